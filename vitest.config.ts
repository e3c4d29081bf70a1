import { defineConfig } from 'vitest/config';

/** Tests that need nothing outside the repository. */
export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/shared/**', 'test/python/**', 'node_modules/**'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
