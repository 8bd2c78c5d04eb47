import '#foundation/node-version';
import 'reflect-metadata';
import { openContext, runRole } from '#modules';
import { SagasModule } from './sagas.module.ts';

await runRole('sagas', (role) => openContext(role, [SagasModule]));
