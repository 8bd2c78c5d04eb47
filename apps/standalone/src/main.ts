import '#foundation/node-version';
import 'reflect-metadata';
import { runProcess } from '#foundation';
import { SETTINGS_READER } from '#modules';
import { startStandalone } from './standalone.ts';

/** `npm start` runs this file. */
await runProcess(
  'standalone',
  (env) => SETTINGS_READER.read(env),
  async (settings, log, resources) => {
    const { urls, welcome } = await startStandalone(process.env, settings, log, resources);
    process.stderr.write(welcome);
    return urls;
  },
);
