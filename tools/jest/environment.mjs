/** Tests run in the worker's own realm (`runner.mjs`), so no separate realm is created for each file. */
import { ModuleMocker } from 'jest-mock';

export default class OwnRealm {
  moduleMocker = new ModuleMocker(globalThis);
  /** Jest sets its own globals here, such as `console`. They do not replace those of Node. */
  global = {};

  async setup() {}

  async teardown() {}

  getVmContext() {
    return null;
  }

  exportConditions() {
    return [];
  }
}
