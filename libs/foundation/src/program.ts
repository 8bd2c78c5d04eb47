/**
 * The parts that every program needs: settings from the environment, a log, a start and a graceful shutdown. Imported
 * as `#foundation/program` by programs without stores, because this module loads no database client.
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
