import packageJson from './package.json' with { type: 'json' };

/** The sources of imports by `#name`, with which Jest finds the specs of changed files. Node resolves them when specs run. */
const moduleNameMapper = Object.fromEntries(
  Object.entries(packageJson.imports).map(([name, { 'app-source': source }]) => [
    `^${name}$`,
    source.replace('./', '<rootDir>/'),
  ]),
);

export default {
  testMatch: ['<rootDir>/{apps,libs,tools}/**/*.spec.ts'],
  modulePathIgnorePatterns: ['<rootDir>/\\.(node|proofs)/'], // installed clients have modules and snapshots of their own
  moduleNameMapper,
  extensionsToTreatAsEsm: ['.ts'],
  testEnvironment: '<rootDir>/tools/jest/environment.mjs',
  testRunner: '<rootDir>/tools/jest/runner.mjs', // loads imported modules once per worker instead of once per file
  injectGlobals: false,
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      {
        swcrc: false,
        jsc: {
          experimental: { keepImportAttributes: true }, // data files are imported as JSON
          parser: { syntax: 'typescript', decorators: true },
          transform: { legacyDecorator: true, decoratorMetadata: true },
          keepClassNames: true,
          target: 'es2024',
        },
        module: { type: 'es6' },
        sourceMaps: true,
      },
    ],
  },
  maxWorkers: 5, // for two cores: workers spend half of the time waiting for timeouts and the database
  testTimeout: 600_000, // ends tests that hang; tests that make progress reach it on no host
  globalSetup: '<rootDir>/libs/testing/src/jest/global-setup.ts',
  globalTeardown: '<rootDir>/libs/testing/src/jest/global-teardown.ts',
  reporters: [['default', { summaryThreshold: 0 }], '<rootDir>/tools/jest-summary.mjs'],
};
