import { defineConfig } from 'vitest/config';

/** Tests that run a Python (test/python/requirements.txt), named by FOREWARN_PYTHON. They fail where it is missing. */
export default defineConfig({ test: { include: ['test/python/**/*.test.ts'], testTimeout: 60_000 } });
