import { readFileSync } from 'node:fs';

/** The libs that each lib may import. Names are folders below `libs`. */
const MAY_IMPORT = {
  kernel: [],
  domain: ['kernel'],
  catalogue: ['kernel', 'domain'],
  application: ['kernel', 'domain', 'catalogue'],
  sagas: ['kernel', 'domain', 'application'],
  runtime: ['kernel'],
  postgres: [],
  projections: ['kernel', 'domain', 'runtime', 'postgres'],
  eventstore: ['kernel', 'runtime', 'postgres'],
  ehbp: [],
  connectors: ['kernel', 'domain', 'application', 'runtime', 'ehbp'],
  foundation: ['kernel', 'domain', 'runtime', 'postgres', 'eventstore', 'projections'],
  audit: ['kernel', 'domain', 'postgres', 'projections', 'foundation'],
};
/** The folders of `libs/application/src` in order of dependency: each may import only those before it. */
const APPLICATION_FOLDERS = [
  'wire',
  'routing',
  'billing',
  'providers',
  'inference/chat',
  'inference/completions',
  'inference/search',
  'inference/responses',
  'inference/chat-execution',
  'inference/private',
  'inference/messages',
  'inference/embeddings',
  'media',
  'data',
  'topups',
  'challenges',
  'autotopup',
  'accounts',
];
const APPS = ['gateway', 'projector', 'sagas', 'ledger', 'maintenance', 'sandbox', 'private-proxy'];
/** A production install has none of these packages. */
const UNSHIPPED = ['npm-dev', 'npm-no-pkg', 'npm-unknown'];
const SANDBOX_PACKAGES = Object.keys(
  JSON.parse(readFileSync('apps/sandbox/packages/package.json', 'utf8')).dependencies,
);
const PRODUCT = '^(apps|libs)/';
const SPEC = '\\.(spec|e2e)\\.ts$';

const lib = (names) => `^libs/(${names.join('|')})/`;

export default {
  forbidden: [
    {
      name: 'no-cycles',
      severity: 'error',
      from: { path: PRODUCT },
      to: { circular: true },
    },
    ...Object.entries(MAY_IMPORT).map(([name, allowed]) => ({
      name: `libs-${name}`,
      comment: `${name} may import: ${allowed.join(', ') || 'nothing'}`,
      severity: 'error',
      from: { path: lib([name]), pathNot: SPEC },
      to: { path: PRODUCT, pathNot: lib([name, ...allowed]) },
    })),
    ...APPLICATION_FOLDERS.map((folder, i) => ({
      name: `application-${folder}`,
      comment: 'a folder of libs/application imports only the folders before it in APPLICATION_FOLDERS',
      severity: 'error',
      from: { path: `^libs/application/src/${folder}/`, pathNot: SPEC },
      to: { path: APPLICATION_FOLDERS.slice(i + 1).map((later) => `^libs/application/src/${later}/`) },
    })).slice(0, -1),
    {
      name: 'application-root',
      comment: 'files at the root of libs/application, apart from index.ts, import none of its folders',
      severity: 'error',
      from: { path: '^libs/application/src/[^/]+$', pathNot: `${SPEC}|/index\\.ts$` },
      to: { path: '^libs/application/src/[^/]+/' },
    },
    {
      name: 'pure',
      comment: 'kernel and domain import no package but immutable, not even a built-in module of Node',
      severity: 'error',
      from: { path: lib(['kernel', 'domain']), pathNot: SPEC },
      to: {
        dependencyTypes: ['core', 'npm', 'npm-dev', 'npm-optional', 'npm-no-pkg', 'unknown'],
        pathNot: '^node_modules/immutable/',
      },
    },
    {
      name: 'libs-modules',
      comment: 'the Nest modules that roles share may import all libs except testing, but no app',
      severity: 'error',
      from: { path: lib(['modules']), pathNot: SPEC },
      to: { path: '^(apps|libs/testing)/' },
    },
    {
      name: 'modules-are-for-apps',
      severity: 'error',
      from: { path: PRODUCT, pathNot: '^(apps|libs/(modules|testing))/' },
      to: { path: lib(['modules']) },
    },
    {
      name: 'testing-is-for-specs',
      severity: 'error',
      from: { path: PRODUCT, pathNot: `${SPEC}|^libs/testing/` },
      to: { path: lib(['testing']) },
    },
    ...APPS.map((name) => ({
      name: `apps-${name}`,
      comment: 'an app does not import another app',
      severity: 'error',
      from: { path: `^apps/${name}/`, pathNot: SPEC },
      to: { path: '^apps/', pathNot: `^apps/${name}/` },
    })),
    {
      name: 'sandbox-is-only-an-address',
      severity: 'error',
      from: {
        path: '^(libs|apps/(gateway|projector|sagas|ledger|maintenance|private-proxy))/',
        pathNot: `${SPEC}|^libs/testing/`,
      },
      to: { path: '^apps/sandbox/' },
    },
    {
      name: 'auditor-is-independent',
      comment: 'the auditor of the simulation shares no code with the product, apart from types of the kernel',
      severity: 'error',
      from: { path: '^libs/testing/src/simulation/auditor', pathNot: SPEC },
      to: { path: PRODUCT, pathNot: '^libs/(kernel/|testing/src/simulation/auditor)' },
    },
    {
      name: 'no-own-barrel',
      comment: 'files of a lib do not import its own index.ts',
      severity: 'error',
      from: { path: '^libs/([^/]+)/', pathNot: SPEC },
      to: { path: '^libs/$1/src/index\\.ts$' },
    },
    {
      name: 'no-dev-dependencies',
      severity: 'error',
      from: { path: PRODUCT, pathNot: `${SPEC}|^libs/testing/|^apps/sandbox/` },
      to: { dependencyTypes: UNSHIPPED, dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'sandbox-packages',
      comment: 'the sandbox imports dependencies of the product and those in its own package.json',
      severity: 'error',
      from: { path: '^apps/sandbox/', pathNot: SPEC },
      to: {
        dependencyTypes: UNSHIPPED,
        dependencyTypesNot: ['type-only'],
        pathNot: `^node_modules/(${SANDBOX_PACKAGES.join('|')})/`,
      },
    },
    { name: 'resolvable', severity: 'error', from: { path: PRODUCT }, to: { couldNotResolve: true } },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    parser: 'swc',
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['app-source', 'import', 'node', 'default', 'types'],
      extensions: ['.ts', '.js', '.mjs', '.json'],
    },
  },
};
