/** Tests run in the worker's own realm (`runner.mjs`), so there is no realm to make for each file. */
import { ModuleMocker } from 'jest-mock';

export default class OwnRealm {
  moduleMocker = new ModuleMocker(globalThis);
  /** What Jest would put in there, such as a console of its own, does not replace what Node has. */
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
