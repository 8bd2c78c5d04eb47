import { Body, Controller, Delete, Get, Param, Patch, Post, Query, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply } from 'fastify';
import { type Caller, Clock, CreateKey, RevokeKey, Secrets, UpdateKey } from '#application';
import type { KeyRecord } from '#domain';
import { type Cause, usdNumber } from '#kernel';
import { readKey, readKeys } from '#projections';
import { Authenticator } from '../edge/authenticator.ts';
import { BooksReader } from '../edge/books-reader.ts';
import { Authenticated, CausedBy } from '../edge/caller.ts';
import { BooksBehind, NotFound } from '../edge/errors.ts';
import { json, Operation } from '../openapi/operation.ts';
import { fieldsOf, KeyChanges, KeyQuery, NewKey } from './keys.requests.ts';
import { KeyAnswer, KeyList, KeyRevoked } from './keys.schemas.ts';

const ID = { id: { description: 'The id of a key', example: '0123456789abcdef01234567' } };

@Controller('keys')
export class KeysController {
  constructor(
    private readonly commands: CommandBus,
    private readonly authenticator: Authenticator,
    private readonly books: BooksReader,
    private readonly secrets: Secrets,
    private readonly clock: Clock,
  ) {}

  @Get()
  @Operation({
    id: 'listKeys',
    tag: 'Keys',
    summary: 'Lists the keys of an account',
    auth: 'account',
    follows: true,
    query: KeyQuery,
    answer: json(KeyList),
  })
  async list(
    @Authenticated() { accountId: account }: Caller,
    @Query() query: KeyQuery,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    await this.books.showAccount(account, reply, 'keys');
    const all = await readKeys(this.books.pool, account, this.clock.now());
    const shown = isTrue(query.include_disabled) ? all : all.filter(({ revokedAt }) => revokedAt === null);
    return {
      status: 'success',
      data: shown.map((key) => wire(key, isTrue(query.show_key) ? this.secrets.open(key.secret) : undefined)),
    };
  }

  @Post()
  @Operation({
    id: 'createKey',
    tag: 'Keys',
    summary: 'Creates a key',
    auth: 'account',
    body: NewKey,
    example: { name: 'my laptop', usage_limit_usd: 5, reset_period: 'monthly' },
    answer: json(KeyAnswer),
    errors: [409],
  })
  async create(@Authenticated() { accountId: account }: Caller, @Body() body: NewKey, @CausedBy() cause: Cause) {
    const { limit = null, resetPeriod = null, expireAt = null } = fieldsOf(body);
    const command = new CreateKey(account, { name: body.name, limit, resetPeriod, expireAt }, cause);
    const { key, apiKey, position } = await this.commands.execute(command);
    this.authenticator.remember(apiKey, { accountId: account, keyId: key.keyId });
    await this.books.show(position, 'keys');
    return { status: 'success', data: wire(key, apiKey) };
  }

  @Get(':id')
  @Operation({
    id: 'getKey',
    tag: 'Keys',
    summary: 'Returns one key',
    auth: 'account',
    follows: true,
    params: ID,
    query: KeyQuery,
    answer: json(KeyAnswer),
    errors: [404],
  })
  async read(
    @Authenticated() { accountId: account }: Caller,
    @Param('id') id: string,
    @Query() query: KeyQuery,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const current = await this.books.showAccount(account, reply, 'keys');
    const key = await readKey(this.books.pool, account, id, this.clock.now());
    if (!key) throw current ? keyNotFound() : new BooksBehind();
    return { status: 'success', data: wire(key, isTrue(query.show_key) ? this.secrets.open(key.secret) : undefined) };
  }

  @Patch(':id')
  @Operation({
    id: 'updateKey',
    tag: 'Keys',
    summary: 'Updates a key',
    description: 'Omitted fields stay unchanged; null removes a limit, a period or an expiry.',
    auth: 'account',
    params: ID,
    body: KeyChanges,
    example: { usage_limit_usd: 10 },
    answer: json(KeyAnswer),
    errors: [404, 409],
  })
  async update(
    @Authenticated() { accountId: account }: Caller,
    @Param('id') id: string,
    @Body() body: KeyChanges,
    @CausedBy() cause: Cause,
  ) {
    const fields = fieldsOf(body);
    const { key, position } = await this.commands.execute(new UpdateKey(account, id, fields, cause));
    await this.books.show(position, 'keys');
    return { status: 'success', data: wire(key) };
  }

  @Delete(':id')
  @Operation({
    id: 'revokeKey',
    tag: 'Keys',
    summary: 'Revokes a key permanently',
    auth: 'account',
    params: ID,
    answer: json(KeyRevoked),
    errors: [404],
  })
  async revoke(@Authenticated() { accountId: account }: Caller, @Param('id') id: string, @CausedBy() cause: Cause) {
    const { position } = await this.commands.execute(new RevokeKey(account, id, cause));
    await this.books.show(position, 'keys');
    return { status: 'success', message: 'API key revoked successfully' };
  }
}

function wire(key: KeyRecord, apiKey?: string) {
  return {
    _id: key.keyId,
    name: key.name,
    ...(apiKey === undefined ? {} : { api_key: apiKey }),
    usage_limit_usd: key.limit === null ? null : usdNumber(key.limit),
    current_period_usage_usd: usdNumber(key.usedInPeriod),
    total_usage_all_time_usd: usdNumber(key.usedInAll),
    reset_period: key.resetPeriod,
    reset_at: key.resetAt,
    expire_at: key.expireAt,
    created_at: key.createdAt,
    updated_at: key.updatedAt,
    deleted_at: key.revokedAt,
  };
}

function isTrue(value: unknown): boolean {
  return value === 'true' || value === '1' || value === true;
}

function keyNotFound(): NotFound {
  return new NotFound('There is no such key');
}
