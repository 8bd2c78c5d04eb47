/** `npm run test:unit`: the specs that use no server, no process and no database. */
import config from '../../jest.config.mjs';

export default {
  ...config,
  rootDir: '../..',
  testPathIgnorePatterns: ['/node_modules/', '\\.int\\.spec\\.ts$'],
};
