import { defineConfig } from 'vitest/config';

/** Tests that need ../shared (real fixtures, weights and transcripts). They fail, with the path, where it is missing. */
export default defineConfig({
  test: {
    include: ['test/shared/**/*.test.ts'],
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
});
