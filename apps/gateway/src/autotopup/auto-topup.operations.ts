import { jsonContent, type OperationOptions } from '../openapi/operation.ts';
import { NewWallet } from './auto-topup.requests.ts';
import { AutoTopupSchema, WalletDisconnectedSchema } from './auto-topup.schemas.ts';

const EXAMPLE_URL =
  'nostr+walletconnect://79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798?relay=wss%3A%2F%2Frelay.example&secret=0000000000000000000000000000000000000000000000000000000000000001';

export const connectWallet: OperationOptions = {
  id: 'connectAutoTopupWallet',
  tag: 'Top-ups',
  summary: 'Connects a wallet for automatic top-up',
  description:
    'When the balance is below the threshold, the wallet receives a request over Nostr Wallet Connect to pay a Lightning invoice. A wallet that was connected before is replaced.',
  auth: 'account',
  body: NewWallet,
  example: { nwc_url: EXAMPLE_URL, threshold_usd: 5, topup_amount_usd: 10 },
  response: jsonContent(AutoTopupSchema),
  rateLimitedAction: 'wallets',
};

export const getAutoTopup: OperationOptions = {
  id: 'getAutoTopup',
  tag: 'Top-ups',
  summary: 'Returns the settings and state of automatic top-up',
  auth: 'account',
  response: jsonContent(AutoTopupSchema),
};

export const disconnectWallet: OperationOptions = {
  id: 'disconnectAutoTopupWallet',
  tag: 'Top-ups',
  summary: 'Disconnects the wallet and ends automatic top-up',
  auth: 'account',
  response: jsonContent(WalletDisconnectedSchema),
  rateLimitedAction: 'changes',
};
