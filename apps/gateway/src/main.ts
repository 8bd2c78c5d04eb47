import '#foundation/node-version';
import 'reflect-metadata';
import { runRole } from '#modules';
import { openGateway } from './gateway.ts';

await runRole('gateway', async (role) => {
  const { api } = await openGateway(role);
  return { api };
});
