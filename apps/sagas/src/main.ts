import 'reflect-metadata';
import { openContext, runRole } from '#modules';
import { SagasModule } from './sagas.module.ts';

await runRole('sagas', async (role) => {
  await openContext(role, [SagasModule]);
  return {};
});
