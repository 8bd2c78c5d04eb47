import { Body, Controller, Delete, Get, Param, Patch, Post, Query, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply } from 'fastify';
import { type Caller, CreateKey, RevokeKey, Secrets, UpdateKey } from '#application';
import type { Cause } from '#kernel';
import { Authenticated, Authenticator, CausedBy } from '../edge/authentication/authenticator.ts';
import { NotFound } from '../edge/errors/errors.ts';
import { Creation } from '../edge/idempotency/creations.ts';
import { BooksReader } from '../edge/reading/read-model-reader.ts';
import { isTrue } from '../edge/validation/validation.ts';
import { Operation } from '../openapi/operation.ts';
import * as operations from './keys.operations.ts';
import { fieldsOf, KeyChanges, KeyQuery, NewKey } from './keys.requests.ts';
import { keyWire } from './keys-wire.ts';

@Controller('keys')
export class KeysController {
  constructor(
    private readonly commands: CommandBus,
    private readonly authenticator: Authenticator,
    private readonly books: BooksReader,
    private readonly secrets: Secrets,
  ) {}

  @Get()
  @Operation(operations.listKeys)
  async list(
    @Authenticated() { accountId: account }: Caller,
    @Query() query: KeyQuery,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const all = await this.books.keys(account, reply);
    const shown = isTrue(query.include_disabled) ? all : all.filter(({ revokedAt }) => revokedAt === null);
    return {
      status: 'success',
      data: shown.map((key) => keyWire(key, isTrue(query.show_key) ? this.secrets.open(key.secret) : undefined)),
    };
  }

  @Post()
  @Creation(operations.createKey)
  async create(@Authenticated() { accountId: account }: Caller, @Body() body: NewKey, @CausedBy() cause: Cause) {
    const { limit = null, resetPeriod = null, expireAt = null } = fieldsOf(body);
    const command = new CreateKey(account, { name: body.name, limit, resetPeriod, expireAt }, cause);
    const { key, apiKey, position } = await this.commands.execute(command);
    this.authenticator.remember(apiKey, { accountId: account, keyId: key.keyId });
    await this.books.show(position, 'keys');
    return { status: 'success', data: keyWire(key, apiKey) };
  }

  @Get(':id')
  @Operation(operations.getKey)
  async read(
    @Authenticated() { accountId: account }: Caller,
    @Param('id') id: string,
    @Query() query: KeyQuery,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const key = await this.books.key(account, id, reply);
    if (!key) throw new NotFound('There is no such key');
    return {
      status: 'success',
      data: keyWire(key, isTrue(query.show_key) ? this.secrets.open(key.secret) : undefined),
    };
  }

  @Patch(':id')
  @Operation(operations.updateKey)
  async update(
    @Authenticated() { accountId: account }: Caller,
    @Param('id') id: string,
    @Body() body: KeyChanges,
    @CausedBy() cause: Cause,
  ) {
    const fields = fieldsOf(body);
    const { key, position } = await this.commands.execute(new UpdateKey(account, id, fields, cause));
    await this.books.show(position, 'keys');
    return { status: 'success', data: keyWire(key) };
  }

  @Delete(':id')
  @Operation(operations.revokeKey)
  async revoke(@Authenticated() { accountId: account }: Caller, @Param('id') id: string, @CausedBy() cause: Cause) {
    const { position } = await this.commands.execute(new RevokeKey(account, id, cause));
    await this.books.show(position, 'keys');
    return { status: 'success', message: 'API key revoked successfully' };
  }
}
