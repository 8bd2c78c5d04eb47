import 'reflect-metadata';
import { runRole } from '#infra';
import { startGateway } from './gateway.ts';

await runRole('gateway', startGateway);
