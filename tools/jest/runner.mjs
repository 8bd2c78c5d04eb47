/**
 * Runs spec files in Node's own module loader instead of a separate realm per file. Imported modules are loaded,
 * compiled and optimised once per worker, not once per file, which halves the work. Two consequences: the state of
 * modules and globals outlives a spec file, and `jest --watch` does not reload changed modules.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { createRequire, registerHooks } from 'node:module';
import { Server, Socket } from 'node:net';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { createScriptTransformer } from '@jest/transform';
import circus from 'jest-circus/runner';
import { provide } from './globals.mjs';

const require = createRequire(import.meta.url);

/** Keys under which Jest's framework stores state in `globalThis`. */
const EVENT_HANDLERS = Symbol.for('EVENT_HANDLERS');
const TEST_TIMEOUT = Symbol.for('TEST_TIMEOUT_SYMBOL');

const GLOBALS = new URL('./globals.mjs', import.meta.url).href;
const PROJECT = new URL('../../', import.meta.url).href;
const TYPESCRIPT = /\.ts(\?run=\d+)?$/;
const AS_ES_MODULE = { instrument: false, supportsDynamicImport: true, supportsStaticESM: true };

/** The spec file of a task, also after the file has ended; `libs/testing/src/replace-delays.ts` reads it. */
const specFile = new AsyncLocalStorage();
globalThis[Symbol.for('SPEC_FILE')] = specFile;

rejectInUnitSpecs(Server.prototype, 'listen');
rejectInUnitSpecs(Socket.prototype, 'connect');

let transformer;
let runs = 0;
/** The source map files that Jest reads, by module URL. */
let sourceMaps = new Map();

registerHooks({
  resolve(specifier, context, next) {
    if (specifier === '@jest/globals') return { url: GLOBALS, format: 'module', shortCircuit: true };
    return next(specifier, { ...context, conditions: [...context.conditions, 'app-source'] });
  },
  load(url, context, next) {
    if (!url.startsWith(PROJECT) || !TYPESCRIPT.test(url)) return next(url, context);
    const { code, sourceMapPath } = transformer.transform(fileURLToPath(url), AS_ES_MODULE);
    sourceMaps.set(url, sourceMapPath);
    return { format: 'module', source: code, shortCircuit: true };
  },
});

export default async function run(globalConfig, config, environment, runtime, testPath, sendMessageToJest) {
  transformer ??= await createScriptTransformer(config);
  const previousMaps = sourceMaps;
  sourceMaps = runtime.getSourceMaps();
  for (const [url, map] of previousMaps) sourceMaps.set(url, map);
  delete globalThis[EVENT_HANDLERS];
  delete globalThis[TEST_TIMEOUT];
  const loader = new Loader(environment);
  return specFile.run(testPath, () =>
    circus.default(globalConfig, config, environment, loader, testPath, sendMessageToJest),
  );
}

/** `npm run test:unit` is fast because its specs use no server and no database. */
function rejectInUnitSpecs(target, method) {
  const original = target[method];
  target[method] = function (...args) {
    const file = specFile.getStore();
    if (file?.endsWith('.spec.ts') && !file.endsWith('.int.spec.ts'))
      throw new Error(`${file} uses the network: rename it to *.int.spec.ts`);
    return original.apply(this, args);
  };
}

/** Stands in for Jest's own module loader (`jest-runtime`). */
class Loader {
  constructor(environment) {
    const mocks = environment.moduleMocker;
    this.jest = {
      fn: mocks.fn.bind(mocks),
      spyOn: mocks.spyOn.bind(mocks),
      restoreAllMocks: mocks.restoreAllMocks.bind(mocks),
      setTimeout(milliseconds) {
        globalThis[TEST_TIMEOUT] = milliseconds;
      },
    };
  }

  requireModule = require;

  /** Loads the framework itself. Each run needs a new instance of it. */
  requireInternalModule(file) {
    delete require.cache[file];
    return require(file);
  }

  setGlobalsForRuntime(globals) {
    provide({ ...globals, jest: this.jest });
  }

  unstable_shouldLoadAsEsm() {
    return true;
  }

  unstable_importModule(file) {
    runs += 1;
    return import(`${pathToFileURL(file).href}?run=${runs}`);
  }

  enterTestCode() {}

  leaveTestCode() {}
}
