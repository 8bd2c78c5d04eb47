import type { ArgumentMetadata, PipeTransform } from '@nestjs/common';
import { getMetadataStorage } from 'class-validator';
import { withModelId } from './asked.ts';
import { assertBounded, assertShort } from './bounds.ts';
import { valid } from './validated.ts';

/**
 * Checks what a controller takes from the body, the query or the path: first its size, and then, where its type is a class
 * with rules, these.
 */
export class ValidationPipe implements PipeTransform {
  private readonly ruled = new WeakMap<object, boolean>();

  transform(value: unknown, { type, metatype, data }: ArgumentMetadata): unknown {
    if (type === 'custom') return value;
    if (type === 'body') assertBounded(value);
    else assertShort(value, data ?? '');
    if (metatype === undefined || !this.hasRules(metatype)) return value;
    return valid(metatype, type === 'body' ? withModelId(value) : value);
  }

  private hasRules(type: new () => object): boolean {
    let ruled = this.ruled.get(type);
    if (ruled === undefined) {
      ruled = getMetadataStorage().getTargetValidationMetadatas(type, '', false, false).length > 0;
      this.ruled.set(type, ruled);
    }
    return ruled;
  }
}
