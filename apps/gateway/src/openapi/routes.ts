import { RequestMethod } from '@nestjs/common';
import { HTTP_CODE_METADATA, METHOD_METADATA, PATH_METADATA } from '@nestjs/common/constants.js';
import { MetadataScanner, type ModulesContainer } from '@nestjs/core';
import { getOperationOptions, type OperationOptions } from './operation.ts';

export interface ControllerRoute {
  /** The declaring method, such as `KeysController.list`. */
  readonly handler: string;
  /** In lower case. */
  readonly method: string;
  /** In Nest's notation, with `:name` and `*`. The first is the primary one. */
  readonly paths: readonly string[];
  /** Of the response to a successful request. */
  readonly status: number;
  readonly options: OperationOptions | undefined;
}

/** Lists every route of every controller, documented or not. */
export function listControllerRoutes(modules: ModulesContainer): ControllerRoute[] {
  const controllers = [...modules.values()].flatMap(({ controllers }) => [...controllers.values()]);
  return controllers.flatMap(({ metatype }) => {
    const { name, prototype } = metatype as { name: string; prototype: Record<string, object> };
    const prefixes = [Reflect.getMetadata(PATH_METADATA, metatype as object)].flat();
    return new MetadataScanner().getAllMethodNames(prototype).flatMap((method): ControllerRoute[] => {
      const handler = prototype[method] as object;
      const verb: RequestMethod | undefined = Reflect.getMetadata(METHOD_METADATA, handler);
      if (verb === undefined) return [];
      const paths = [Reflect.getMetadata(PATH_METADATA, handler)].flat();
      return [
        {
          handler: `${name}.${method}`,
          method: RequestMethod[verb].toLowerCase(),
          paths: prefixes.flatMap((prefix) => paths.map((path) => joinPath(prefix, path))),
          status: Reflect.getMetadata(HTTP_CODE_METADATA, handler) ?? (verb === RequestMethod.POST ? 201 : 200),
          options: getOperationOptions(prototype, method),
        },
      ];
    });
  });
}

function joinPath(...parts: readonly string[]): string {
  return `/${parts
    .flatMap((part) => part.split('/'))
    .filter((part) => part !== '')
    .join('/')}`;
}
