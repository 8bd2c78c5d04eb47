/** The schemas and responses that the OpenAPI document defines once and its operations reference. */
import { STATUS_CODES } from 'node:http';
import type { ErrorFormatName } from '../edge/errors/error-formats.ts';
import { getResponseHeaders, type ResponseHeaderOptions } from './headers.ts';
import { type Content, getSchemaName, type JsonSchema, jsonContent, type OperationOptions } from './operation.ts';
import { AnthropicErrorSchema, ErrorSchema, PaymentRequiredSchema, text } from './schemas.ts';

export interface DocumentedResponse {
  readonly description: string;
  readonly headers?: object;
  readonly content?: Readonly<Record<string, { readonly schema: JsonSchema }>>;
}

/** The prefix of component names, and the content of error responses, by error format. */
const ERROR_CONTENT: Readonly<Record<ErrorFormatName, { readonly prefix: string; readonly content: Content }>> = {
  openai: { prefix: '', content: jsonContent(ErrorSchema) },
  openrouter: { prefix: '', content: jsonContent(ErrorSchema) },
  anthropic: { prefix: 'Anthropic', content: jsonContent(AnthropicErrorSchema) },
  page: { prefix: 'Page', content: { 'text/html': text('A page that describes the error') } },
};

/** Collects the components that the document references. */
export class Components {
  readonly schemas: Record<string, JsonSchema> = {};
  readonly responses: Record<string, DocumentedResponse> = {};
  private readonly contentByName = new Map<string, string>();

  registerErrorResponse(
    status: number,
    { paid, payPerRequest: challenge, creates, streamed, errorFormat }: OperationOptions,
  ): { readonly $ref: string } {
    const statusName = (STATUS_CODES[status] ?? `Status ${status}`).replaceAll(/\W/g, '');
    if (challenge && status === 402) {
      this.responses[`Challenge${statusName}`] ??= this.createResponse(status, jsonContent(PaymentRequiredSchema), {
        paid,
        payPerRequest: challenge,
      });
      return { $ref: `#/components/responses/Challenge${statusName}` };
    }
    const { prefix, content } = ERROR_CONTENT[errorFormat ?? 'openai'];
    const name = `${prefix}${streamed ? 'Streamed' : ''}${paid ? 'Paid' : creates ? 'Creation' : ''}${statusName}`;
    const kind = {
      ...(paid ? { paid } : {}),
      ...(streamed ? { streamed } : {}),
      ...(creates ? { creates } : {}),
      ...(errorFormat ? { errorFormat } : {}),
    };
    this.responses[name] ??= this.createResponse(status, content, kind);
    return { $ref: `#/components/responses/${name}` };
  }

  createResponse(status: number, content: Content, kind: Partial<ResponseHeaderOptions>): DocumentedResponse {
    const headers = ['x-request-id', ...getResponseHeaders(status, kind)];
    return {
      description: STATUS_CODES[status] ?? String(status),
      headers: Object.fromEntries(headers.map((name) => [name, { $ref: `#/components/headers/${name}` }])),
      content: Object.fromEntries(
        Object.entries(content).map(([type, schema]) => [type, { schema: this.registerSchema(schema) }]),
      ),
    };
  }

  /** Returns the schema with every named schema in it, itself included, replaced by a reference. */
  registerSchema(schema: JsonSchema): JsonSchema {
    const name = getSchemaName(schema);
    if (name === undefined) return this.registerNestedSchemas(schema);
    const content = JSON.stringify(schema);
    if (this.contentByName.get(name) === undefined) {
      this.contentByName.set(name, content);
      this.schemas[name] = this.registerNestedSchemas(schema);
    } else if (this.contentByName.get(name) !== content) throw new Error(`two schemas are called ${name}`);
    return { $ref: `#/components/schemas/${name}` };
  }

  private registerNestedSchemas(schema: JsonSchema): JsonSchema {
    return Object.fromEntries(Object.entries(schema).map(([keyword, value]) => [keyword, this.registerValue(value)]));
  }

  private registerValue(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((item) => this.registerValue(item));
    return typeof value === 'object' && value !== null ? this.registerSchema(value as JsonSchema) : value;
  }
}
