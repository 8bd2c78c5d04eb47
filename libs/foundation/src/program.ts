/**
 * What any program is made of: settings from the environment, a log, and an orderly start and end. `#foundation/program`, for programs
 * that have no stores: importing it loads no database client.
 */
export { ConnectionGuard, SERVER_TIMEOUTS } from './connections.ts';
export { createLog, type Log } from './log.ts';
export { runProcess } from './process.ts';
export {
  choice,
  type Environment,
  integer,
  optional,
  type Setting,
  SettingError,
  secret,
  text,
  url,
} from './setting-types.ts';
export { StartError } from './start-error.ts';
