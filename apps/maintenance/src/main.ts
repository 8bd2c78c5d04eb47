import '#foundation/node-version';
import 'reflect-metadata';
import { openContext, runRole } from '#modules';
import { BackupModule } from './backup.module.ts';

await runRole('backup', (role) => openContext(role, [BackupModule]));
