/**
 * What providers send, by the Zod schemas of their SDKs. Types of such an SDK describe its own objects, whose names
 * differ from those of the JSON.
 */
import {
  BadRequestResponseErrorData$inboundSchema,
  ChatResult$inboundSchema,
  ChatStreamChunk$inboundSchema,
} from '@openrouter/sdk/models';
import { toJSONSchema, z } from 'zod/v4';
import type { Schema } from './to-schema.ts';

const ZOD_CONTRACTS: Readonly<Record<string, Readonly<Record<string, z.ZodType>>>> = {
  openrouter: {
    chatResponse: ChatResult$inboundSchema,
    chatEvent: ChatStreamChunk$inboundSchema,
    error: z.object({ error: BadRequestResponseErrorData$inboundSchema, user_id: z.string().nullable().optional() }),
  },
};

/** Returns the definitions of the messages of a provider. */
export function listZodContracts(provider: string): ReadonlyMap<string, Schema> {
  const schemas = Object.entries(ZOD_CONTRACTS[provider] ?? {}).map(([message, zodSchema]): [string, Schema] => {
    const schema = toJSONSchema(zodSchema, { io: 'input', unrepresentable: 'any' }) as Schema;
    return [message, close(schema) as Schema];
  });
  return new Map(schemas);
}

/** Closes the objects, and omits keywords without effect on deviations. */
function close(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(close);
  if (typeof schema !== 'object' || schema === null) return schema;
  const { type, properties, required, additionalProperties, items, anyOf, ...rest } = schema as Schema;
  if (rest.$ref !== undefined || rest.$defs !== undefined) throw new Error('recursive schemas are not supported');
  if (anyOf) return { anyOf: close(anyOf) };
  return {
    ...(type === undefined ? {} : { type }),
    ...('const' in rest ? { const: rest.const } : {}),
    ...('enum' in rest ? { enum: rest.enum } : {}),
    ...(items === undefined ? {} : { items: close(items) }),
    ...(properties ? { properties: closeEach(properties) } : {}),
    ...(required ? { required } : {}),
    ...(type === 'object' ? { additionalProperties: additionalProperties ? close(additionalProperties) : false } : {}),
  };
}

function closeEach(properties: unknown): unknown {
  return Object.fromEntries(Object.entries(properties as Schema).map(([name, property]) => [name, close(property)]));
}
