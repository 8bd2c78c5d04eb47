import { jsonContent, type OperationOptions } from '../openapi/operation.ts';
import { NewCardSession, NewTopup } from './topups.requests.ts';
import {
  CardSession,
  CheckoutContent,
  PaymentMethods,
  TopupInvoice,
  TopupStatusSchema,
  WebhookReceivedSchema,
} from './topups.schemas.ts';

export const createTopup: OperationOptions = {
  id: 'createTopup',
  tag: 'Top-ups',
  summary: 'Creates a top-up invoice',
  description: 'The account is credited once the payment is confirmed; a Lightning payment is confirmed at once.',
  auth: 'key',
  creditIdLocation: 'body',
  params: { method: { description: 'A payment method', example: 'btc-lightning' } },
  body: NewTopup,
  example: { amount: 5, currency: 'USD' },
  response: jsonContent(TopupInvoice),
  rateLimitedAction: 'invoices',
  errors: [404, 409, 502],
};

export const getTopup: OperationOptions = {
  id: 'getTopup',
  tag: 'Top-ups',
  summary: 'Returns the status of an invoice',
  auth: 'public',
  params: { id: { description: 'The id of an invoice', example: '8vy58fo1Z8DYdFkUxp9yJd' } },
  response: jsonContent(TopupStatusSchema),
  errors: [404, 503],
};

export const getCheckout: OperationOptions = {
  id: 'getCheckout',
  tag: 'Top-ups',
  summary: 'Returns the page on which an invoice is paid',
  description:
    'For a browser: amount, QR code, remaining time and status. Works without scripts and loads no external resources.',
  auth: 'public',
  errorFormat: 'page',
  params: { id: { description: 'The id of an invoice', example: '8vy58fo1Z8DYdFkUxp9yJd' } },
  response: { 'text/html': CheckoutContent },
  errors: [404, 503],
};

export const createCardSession: OperationOptions = {
  id: 'createCardSession',
  tag: 'Top-ups',
  summary: 'Creates a card payment',
  description:
    'The customer pays on the page of the card processor. The account is credited as soon as the payment succeeds.',
  auth: 'key',
  creditIdLocation: 'body',
  body: NewCardSession,
  example: { amount: 25, currency: 'USD' },
  response: jsonContent(CardSession),
  rateLimitedAction: 'invoices',
  errors: [404, 409, 502],
};

export const getCardPage: OperationOptions = {
  id: 'getCardPage',
  tag: 'Top-ups',
  summary: 'Returns the page on which a card payment starts',
  description:
    'For a browser: the customer enters an amount and an API key or credit id, then pays on the card processor’s page.',
  auth: 'public',
  errorFormat: 'page',
  response: { 'text/html': CheckoutContent },
  errors: [404],
};

export const receivePaymentWebhook: OperationOptions = {
  id: 'receivePaymentHook',
  tag: 'Top-ups',
  summary: 'Receives a webhook of a payment backend',
  description:
    'For payment backends that sign webhooks with a shared secret, such as BTCPay Server. A webhook only triggers a check of the invoices that it names.',
  auth: 'public',
  raw: true,
  params: { backend: { description: 'The payment backend', example: 'btcpay' } },
  response: jsonContent(WebhookReceivedSchema),
  errors: [401, 404, 413, 503],
};

export const listPaymentMethods: OperationOptions = {
  id: 'listPaymentMethods',
  tag: 'Top-ups',
  summary: 'Lists the payment methods and their limits',
  auth: 'public',
  cacheable: true,
  response: jsonContent(PaymentMethods),
};
