import { Body, Controller, HttpCode, Post, Req } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyRequest } from 'fastify';
import { OpenAccount } from '#application';
import { usdNumber, ZERO } from '#kernel';
import { readBalance } from '#projections';
import { Authenticator } from '../edge/authenticator.ts';
import { BooksReader } from '../edge/books-reader.ts';
import { Unauthorized } from '../edge/errors.ts';
import { json, Operation } from '../openapi/operation.ts';
import { Field } from '../openapi/request-schema.ts';
import { CREDIT_ID, nullable } from '../openapi/schemas.ts';
import { Account, Balance } from './accounts.schemas.ts';

class BalanceRequest {
  @Field(nullable(CREDIT_ID))
  credit_id?: unknown;
}

@Controller()
export class AccountsController {
  constructor(
    private readonly commands: CommandBus,
    private readonly authenticator: Authenticator,
    private readonly books: BooksReader,
  ) {}

  @Post('accounts/create')
  @Operation({
    id: 'createAccount',
    tag: 'Account',
    summary: 'Opens an account',
    description: 'Nothing is asked. The account begins with one key, called Default, and without money.',
    auth: 'public',
    answer: json(Account),
    errors: [503],
  })
  async create() {
    const { accountId, apiKey, position } = await this.commands.execute(new OpenAccount());
    await this.books.show(position, 'keys', 'balances');
    return { success: true, credit_id: accountId, api_key: apiKey, balance: usdNumber(ZERO) };
  }

  @Post('credits/balance')
  @HttpCode(200)
  @Operation({
    id: 'getBalance',
    tag: 'Account',
    summary: 'Tells the balance',
    auth: 'key',
    body: BalanceRequest,
    answer: json(Balance),
  })
  async balance(@Req() request: FastifyRequest, @Body() body?: BalanceRequest) {
    const { accountId } = await this.authenticator.reader(request, body?.credit_id);
    await this.books.showAccount(accountId, 'balances');
    const balance = await readBalance(this.books.pool, accountId);
    if (!balance) throw new Unauthorized('The credit id is not valid');
    const available = usdNumber(balance.available);
    return { balance: available, balance_usd: available, held_usd: usdNumber(balance.held), currency: 'USD' };
  }
}
