import { Body, Controller, Delete, Get, Param, Patch, Post, Query, Req } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { IsIn, IsNumber, IsOptional, Length, Max, Min, ValidateIf } from 'class-validator';
import type { FastifyRequest } from 'fastify';
import { Clock, CreateKey, type KeyFields, RevokeKey, Secrets, UpdateKey } from '#application';
import { instantIn, MAX_KEY_NAME, type RejectionCode, type ResetPeriod } from '#domain';
import { money, Rejection, usdNumber } from '#kernel';
import { type KeyView, readKey, readKeys } from '#projections';
import { Authenticator } from '../edge/authenticator.ts';
import { BooksReader } from '../edge/books-reader.ts';
import { isText, Satisfies, valid } from '../edge/validated.ts';
import { json, Operation } from '../openapi/operation.ts';
import { Field } from '../openapi/request-schema.ts';
import { BOOLEAN, dateOrTime, text } from '../openapi/schemas.ts';
import { KeyAnswer, KeyList, KeyRevoked } from './keys.schemas.ts';

const RESET_PERIODS = ['daily', 'weekly', 'monthly'] as const;

/** A larger limit is as good as none, and would not fit where the books are kept. */
const MAX_LIMIT_USD = 1_000_000_000;

const ID = { id: { description: 'The id of a key', example: '0123456789abcdef01234567' } };
const NAME = text('What the account calls it; no two active keys share one');

// Rules are checked from the last one up: the type stands next to its field.
class KeyLimits {
  @Field({ description: 'What it may spend in a period, or in all where there are no periods' })
  @IsOptional()
  @Max(MAX_LIMIT_USD, { message: `usage_limit_usd must be at most ${MAX_LIMIT_USD}` })
  @Min(0.01, { message: 'usage_limit_usd must be at least 0.01' })
  @IsNumber({ allowNaN: false, allowInfinity: false }, { message: 'usage_limit_usd must be a number or null' })
  usage_limit_usd?: number | null;

  @Field({ description: 'How often what it has spent is counted from zero again; needs a limit' })
  @IsOptional()
  @IsIn(RESET_PERIODS, { message: `reset_period must be one of ${RESET_PERIODS.join(', ')}, or null` })
  reset_period?: ResetPeriod | null;

  @Field(dateOrTime('From when on it is refused'))
  @IsOptional()
  @Satisfies((value) => instantIn(value) !== undefined, 'expire_at must be an ISO 8601 date and time, or null')
  expire_at?: string | null;
}

class NewKey extends KeyLimits {
  @Field(NAME)
  @Length(1, MAX_KEY_NAME, { message: `name must have 1 to ${MAX_KEY_NAME} characters` })
  @Satisfies(isText, 'name must be a string')
  name!: string;
}

class KeyChanges extends KeyLimits {
  @Field(NAME)
  @ValidateIf((changes) => changes.name !== undefined)
  @Length(1, MAX_KEY_NAME, { message: `name must have 1 to ${MAX_KEY_NAME} characters` })
  @Satisfies(isText, 'name must be a string')
  name?: string;
}

class KeyQuery {
  @Field({ ...BOOLEAN, description: 'Revoked keys as well' })
  include_disabled?: unknown;

  @Field({ ...BOOLEAN, description: 'With the secrets themselves' })
  show_key?: unknown;
}

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
    query: KeyQuery,
    answer: json(KeyList),
  })
  async list(@Req() request: FastifyRequest, @Query() query: KeyQuery) {
    const account = await this.authenticator.accountOf(request);
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
  async create(@Req() request: FastifyRequest, @Body() sent: unknown) {
    const account = await this.authenticator.accountOf(request);
    const body = valid(NewKey, sent);
    const { limit = null, resetPeriod = null, expireAt = null } = fieldsOf(body);
    const command = new CreateKey(account, { name: body.name, limit, resetPeriod, expireAt });
    const { keyId, position } = await this.commands.execute(command);
    return { status: 'success', data: await this.written(account, keyId, position, true) };
  }

  @Get(':id')
  @Operation({
    id: 'getKey',
    tag: 'Keys',
    summary: 'Tells of one key',
    auth: 'account',
    params: ID,
    query: KeyQuery,
    answer: json(KeyAnswer),
    errors: [404],
  })
  async read(@Req() request: FastifyRequest, @Param('id') id: string, @Query() query: KeyQuery) {
    const account = await this.authenticator.accountOf(request);
    await this.books.showAccount(account, 'keys');
    const key = await readKey(this.books.pool, account, id, this.clock.now());
    if (!key) throw keyNotFound();
    return { status: 'success', data: this.wire(key, isTrue(query.show_key)) };
  }

  @Patch(':id')
  @Operation({
    id: 'updateKey',
    tag: 'Keys',
    summary: 'Changes a key',
    description: 'Fields that are not sent stay as they are; null clears a limit, a period or an expiry.',
    auth: 'account',
    params: ID,
    body: KeyChanges,
    example: { usage_limit_usd: 10 },
    answer: json(KeyAnswer),
    errors: [404, 409],
  })
  async update(@Req() request: FastifyRequest, @Param('id') id: string, @Body() sent: unknown) {
    const account = await this.authenticator.accountOf(request);
    const fields = fieldsOf(valid(KeyChanges, sent));
    const { keyId, position } = await this.commands.execute(new UpdateKey(account, id, fields));
    return { status: 'success', data: await this.written(account, keyId, position, false) };
  }

  @Delete(':id')
  @Operation({
    id: 'revokeKey',
    tag: 'Keys',
    summary: 'Revokes a key, for good',
    auth: 'account',
    params: ID,
    answer: json(KeyRevoked),
    errors: [404],
  })
  async revoke(@Req() request: FastifyRequest, @Param('id') id: string) {
    const account = await this.authenticator.accountOf(request);
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

/** Undefined leaves a field as it is, null clears it. */
function fieldsOf({ name, usage_limit_usd, reset_period, expire_at }: KeyChanges): Partial<KeyFields> {
  return {
    ...(name === undefined ? {} : { name }),
    ...(usage_limit_usd === undefined
      ? {}
      : { limit: usage_limit_usd === null ? null : money.usdNearest(usage_limit_usd) }),
    ...(reset_period === undefined ? {} : { resetPeriod: reset_period }),
    ...(expire_at === undefined ? {} : { expireAt: instantIn(expire_at) ?? null }),
  };
}

function isTrue(value: unknown): boolean {
  return value === 'true' || value === '1' || value === true;
}

function keyNotFound(): Rejection<RejectionCode> {
  return new Rejection('key_not_found', 'There is no such key');
}
