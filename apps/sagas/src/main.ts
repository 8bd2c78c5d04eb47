import 'reflect-metadata';
import { runRole } from '#infra';
import { startSagas } from './sagas.ts';

await runRole('sagas', startSagas);
