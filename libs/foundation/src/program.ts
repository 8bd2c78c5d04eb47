/**
 * The parts of a program without stores: settings from the environment, a log, limits of connections, a start and a
 * graceful shutdown. Imported as `#foundation/program`, which loads no database client.
 */
export { ConnectionGuard, interruptAfter, SERVER_TIMEOUTS } from './connections.ts';
export { createLog, type Log } from './log.ts';
export { runProcess } from './process.ts';
export { readSetting } from './secret-files.ts';
export {
  type Environment,
  flag,
  integer,
  optional,
  type Setting,
  SettingError,
  type SettingValues,
  secret,
  text,
  url,
} from './setting-types.ts';
export { StartError } from './start-error.ts';
