import { Body, Controller, HttpCode, Post, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply } from 'fastify';
import { type Caller, OpenAccount } from '#application';
import { type Cause, toUsdJsonNumber, ZERO_USD } from '#kernel';
import { ProcessRole } from '#modules';
import { readBalance } from '#projections';
import { Authenticator, CurrentCaller, RequestCause } from '../edge/authentication/authenticator.ts';
import { ForbiddenError, ReadModelLaggingError, UnauthorizedError } from '../edge/errors/errors.ts';
import { ReadModelReader } from '../edge/reading/read-model-reader.ts';
import { jsonContent, Operation } from '../openapi/operation.ts';
import { BalanceRequest, NewAccount } from './accounts.requests.ts';
import { AccountSchema, BalanceSchema } from './accounts.schemas.ts';

@Controller()
export class AccountsController {
  constructor(
    private readonly commands: CommandBus,
    private readonly authenticator: Authenticator,
    private readonly readModels: ReadModelReader,
    private readonly role: ProcessRole,
  ) {}

  @Post('accounts/create')
  @Operation({
    id: 'createAccount',
    tag: 'Account',
    summary: 'Opens an account',
    description:
      'Requires no credential. The account starts with a balance of 0 and one API key, named Default. After a 503 response, retry: if the failed request did open an account, it is empty and its key was never returned.',
    auth: 'public',
    response: jsonContent(AccountSchema),
    rateLimitedAction: 'accounts',
    errors: [403],
  })
  async create(@RequestCause() cause: Cause, @Body() _: NewAccount) {
    if (this.role.settings.accountsByOperator)
      throw new ForbiddenError('The accounts of this installation are opened by its operator');
    const { creditId, accountId, apiKey, keyId, position } = await this.commands.execute(new OpenAccount(cause));
    this.authenticator.cacheCaller(apiKey, { accountId, keyId });
    await this.readModels.waitForPosition(position, 'keys', 'balances');
    return { success: true, credit_id: creditId, api_key: apiKey, balance: toUsdJsonNumber(ZERO_USD) };
  }

  @Post('credits/balance')
  @HttpCode(200)
  @Operation({
    id: 'getBalance',
    tag: 'Account',
    summary: 'Returns the balance',
    auth: 'key',
    readsAccountEvents: true,
    creditIdLocation: 'body',
    body: BalanceRequest,
    response: jsonContent(BalanceSchema),
  })
  async getBalance(
    @CurrentCaller() { accountId }: Caller,
    @Body() _: BalanceRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ) {
    const isCurrent = await this.readModels.waitForAccount(accountId, reply, 'balances');
    const balance = await readBalance(this.readModels.pool, accountId);
    if (!balance) throw isCurrent ? new UnauthorizedError('Invalid credit id') : new ReadModelLaggingError();
    const available = toUsdJsonNumber(balance.available);
    return { balance: available, balance_usd: available, held_usd: toUsdJsonNumber(balance.held), currency: 'USD' };
  }
}
