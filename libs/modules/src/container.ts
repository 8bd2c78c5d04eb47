import { type DynamicModule, Module, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { ReadyFields } from '#foundation';
import { HealthListener } from './health-listener.ts';
import { Readiness } from './readiness.ts';
import { ProcessRole } from './role.ts';

class RoleModule {}

/** The root of a container. Its modules start in this order, and drain in the opposite one. */
@Module({})
class RootModule {}

export function createRootModule(role: ProcessRole, modules: readonly Type[]): DynamicModule {
  const roleModule = {
    module: RoleModule,
    global: true,
    providers: [{ provide: ProcessRole, useValue: role }],
    exports: [ProcessRole],
  };
  return { module: RootModule, imports: [roleModule, ...modules] };
}

/**
 * Starts modules that serve nothing over HTTP but, where `HEALTH_PORT` is set, how they are.
 * @returns the address of that
 */
export async function openContext(role: ProcessRole, modules: readonly Type[]): Promise<ReadyFields> {
  const root = createRootModule(role, modules);
  const context = await role.closeOnExit(
    await NestFactory.createApplicationContext(root, { logger: false, abortOnError: false }),
  );
  const { settings } = role;
  if (settings.healthPort === undefined) return {};
  const { url } = await role.closeOnExit(
    await HealthListener.open(context.get(Readiness), settings.healthPort, settings),
  );
  return { health: url };
}
