import { type DynamicModule, Module, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Role } from './role.ts';

class RoleModule {}

/** The root of a container. Its modules start in this order, and drain in the opposite one. */
@Module({})
class Root {}

export function rootOf(role: Role, modules: readonly Type[]): DynamicModule {
  const roleModule = {
    module: RoleModule,
    global: true,
    providers: [{ provide: Role, useValue: role }],
    exports: [Role],
  };
  return { module: Root, imports: [roleModule, ...modules] };
}

/** Starts modules that serve nothing over HTTP. */
export async function openContext(role: Role, modules: readonly Type[]): Promise<void> {
  const root = rootOf(role, modules);
  await role.keep(await NestFactory.createApplicationContext(root, { logger: false, abortOnError: false }));
}
