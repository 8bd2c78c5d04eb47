import { Body, Controller, Delete, Get, Param, Patch, Post, Query, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply } from 'fastify';
import { type Caller, CreateKey, RevokeKey, Secrets, UpdateKey } from '#application';
import { UNRESTRICTED_ACCESS } from '#domain';
import type { Cause } from '#kernel';
import { Authenticator, CurrentCaller, RequestCause } from '../edge/authentication/authenticator.ts';
import { NotFoundError } from '../edge/errors/errors.ts';
import { Creation } from '../edge/idempotency/creation.ts';
import { ReadModelReader } from '../edge/reading/read-model-reader.ts';
import { isTrue } from '../edge/validation/validation.ts';
import { Operation } from '../openapi/operation.ts';
import * as operations from './keys.operations.ts';
import { KeyChanges, KeyListQuery, KeyQuery, MAX_KEY_PAGE_SIZE, NewKey, toKeyFields } from './keys.requests.ts';
import { toKeyJson } from './keys-wire.ts';
import { parsePageNumber } from './queries.requests.ts';

const NO_KEY_LIMITS = { limit: null, resetPeriod: null, expireAt: null };

@Controller('keys')
export class KeysController {
  constructor(
    private readonly commands: CommandBus,
    private readonly authenticator: Authenticator,
    private readonly readModels: ReadModelReader,
    private readonly secrets: Secrets,
  ) {}

  @Get()
  @Operation(operations.listKeys)
  async list(
    @CurrentCaller() { accountId: account }: Caller,
    @Query() query: KeyListQuery,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const page = parsePageNumber('page', query.page, 1);
    const size = Math.min(parsePageNumber('page_count', query.page_count, MAX_KEY_PAGE_SIZE), MAX_KEY_PAGE_SIZE);
    const filter = { includesRevoked: isTrue(query.include_disabled), page, size };
    const { keys, total } = await this.readModels.listKeys(account, filter, reply);
    return {
      status: 'success',
      data: keys.map((key) => toKeyJson(key, isTrue(query.show_key) ? this.secrets.open(key.secret) : undefined)),
      pagination: { page, page_count: size, total, total_pages: Math.ceil(total / size) },
    };
  }

  @Post()
  @Creation(operations.createKey)
  async create(@CurrentCaller() { accountId: account }: Caller, @Body() body: NewKey, @RequestCause() cause: Cause) {
    const fields = { ...NO_KEY_LIMITS, ...UNRESTRICTED_ACCESS, ...toKeyFields(body), name: body.name };
    const command = new CreateKey(account, fields, cause);
    const { key, apiKey, position } = await this.commands.execute(command);
    this.authenticator.cacheCaller(apiKey, { accountId: account, keyId: key.keyId });
    await this.readModels.waitForPosition(position, 'keys');
    return { status: 'success', data: toKeyJson(key, apiKey) };
  }

  @Get(':id')
  @Operation(operations.getKey)
  async read(
    @CurrentCaller() { accountId: account }: Caller,
    @Param('id') id: string,
    @Query() query: KeyQuery,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const key = await this.readModels.findApiKey(account, id, reply);
    if (!key) throw new NotFoundError('API key not found');
    return {
      status: 'success',
      data: toKeyJson(key, isTrue(query.show_key) ? this.secrets.open(key.secret) : undefined),
    };
  }

  @Patch(':id')
  @Operation(operations.updateKey)
  async update(
    @CurrentCaller() { accountId: account }: Caller,
    @Param('id') id: string,
    @Body() body: KeyChanges,
    @RequestCause() cause: Cause,
  ) {
    const fields = toKeyFields(body);
    const { key, position } = await this.commands.execute(new UpdateKey(account, id, fields, cause));
    await this.readModels.waitForPosition(position, 'keys');
    return { status: 'success', data: toKeyJson(key) };
  }

  @Delete(':id')
  @Operation(operations.revokeKey)
  async revoke(@CurrentCaller() { accountId: account }: Caller, @Param('id') id: string, @RequestCause() cause: Cause) {
    const { position } = await this.commands.execute(new RevokeKey(account, id, cause));
    await this.readModels.waitForPosition(position, 'keys');
    return { status: 'success', message: 'API key revoked successfully' };
  }
}
