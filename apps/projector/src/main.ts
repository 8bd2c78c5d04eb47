import 'reflect-metadata';
import { openContext, runRole } from '#modules';
import { ProjectorModule } from './projector.module.ts';

await runRole('projector', async (role) => {
  await openContext(role, [ProjectorModule]);
  return {};
});
