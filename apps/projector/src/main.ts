import '#foundation/node-version';
import 'reflect-metadata';
import { openContext, runRole } from '#modules';
import { ProjectorModule } from './projector.module.ts';

await runRole('projector', (role) => openContext(role, [ProjectorModule]));
