import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // A process per file: what one file does to its process (descriptors, signals, limits) stays there.
    pool: 'forks',
    maxWorkers: 4,
    testTimeout: 30_000,
    hookTimeout: 120_000,
    teardownTimeout: 20_000,
  },
});
