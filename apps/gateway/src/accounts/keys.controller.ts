import { Body, Controller, Delete, Get, Param, Patch, Post, Query } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { type Caller, Clock, CreateKey, RevokeKey, Secrets, UpdateKey } from '#application';
import type { RejectionCode } from '#domain';
import { Rejection, usdNumber } from '#kernel';
import { type KeyView, readKey, readKeys } from '#projections';
import { BooksReader } from '../edge/books-reader.ts';
import { Authenticated } from '../edge/caller.ts';
import { json, Operation } from '../openapi/operation.ts';
import { fieldsOf, KeyChanges, KeyQuery, NewKey } from './keys.requests.ts';
import { KeyAnswer, KeyList, KeyRevoked } from './keys.schemas.ts';

const ID = { id: { description: 'The id of a key', example: '0123456789abcdef01234567' } };

@Controller('keys')
export class KeysController {
  constructor(
    private readonly commands: CommandBus,
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
    query: KeyQuery,
    answer: json(KeyList),
  })
  async list(@Authenticated() { accountId: account }: Caller, @Query() query: KeyQuery) {
    await this.books.showAccount(account, 'keys');
    const all = await readKeys(this.books.pool, account, this.clock.now());
    const shown = isTrue(query.include_disabled) ? all : all.filter(({ revokedAt }) => revokedAt === null);
    return { status: 'success', data: shown.map((key) => this.wire(key, isTrue(query.show_key))) };
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
  async create(@Authenticated() { accountId: account }: Caller, @Body() body: NewKey) {
    const { limit = null, resetPeriod = null, expireAt = null } = fieldsOf(body);
    const command = new CreateKey(account, { name: body.name, limit, resetPeriod, expireAt });
    const { keyId, position } = await this.commands.execute(command);
    return { status: 'success', data: await this.written(account, keyId, position, true) };
  }

  @Get(':id')
  @Operation({
    id: 'getKey',
    tag: 'Keys',
    summary: 'Returns one key',
    auth: 'account',
    params: ID,
    query: KeyQuery,
    answer: json(KeyAnswer),
    errors: [404],
  })
  async read(@Authenticated() { accountId: account }: Caller, @Param('id') id: string, @Query() query: KeyQuery) {
    await this.books.showAccount(account, 'keys');
    const key = await readKey(this.books.pool, account, id, this.clock.now());
    if (!key) throw keyNotFound();
    return { status: 'success', data: this.wire(key, isTrue(query.show_key)) };
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
  async update(@Authenticated() { accountId: account }: Caller, @Param('id') id: string, @Body() body: KeyChanges) {
    const fields = fieldsOf(body);
    const { keyId, position } = await this.commands.execute(new UpdateKey(account, id, fields));
    return { status: 'success', data: await this.written(account, keyId, position, false) };
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
  async revoke(@Authenticated() { accountId: account }: Caller, @Param('id') id: string) {
    const { position } = await this.commands.execute(new RevokeKey(account, id));
    await this.books.show(position, 'keys');
    return { status: 'success', message: 'API key revoked successfully' };
  }

  private async written(account: string, keyId: string, position: bigint, showKey: boolean) {
    await this.books.show(position, 'keys');
    const key = await readKey(this.books.pool, account, keyId, this.clock.now());
    if (!key) throw keyNotFound();
    return this.wire(key, showKey);
  }

  private wire(key: KeyView, showKey: boolean) {
    return {
      _id: key.keyId,
      name: key.name,
      ...(showKey ? { api_key: this.secrets.open(key.secret) } : {}),
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
}

function isTrue(value: unknown): boolean {
  return value === 'true' || value === '1' || value === true;
}

function keyNotFound(): Rejection<RejectionCode> {
  return new Rejection('key_not_found', 'There is no such key');
}
