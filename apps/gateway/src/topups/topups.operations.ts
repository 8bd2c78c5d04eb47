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
  description: 'The account is credited as soon as the invoice is paid.',
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
    'For people: amount, QR code, time left and status. It works without scripts, and loads nothing from elsewhere.',
  auth: 'public',
  errorFormat: 'page',
  params: { id: { description: 'The id of an invoice', example: '8vy58fo1Z8DYdFkUxp9yJd' } },
  response: { 'text/html': CheckoutContent },
  errors: [404, 503],
};

export const createCardSession: OperationOptions = {
  id: 'createCardSession',
  tag: 'Top-ups',
  summary: 'Creates a payment by card',
  description:
    'The customer pays on a page of the card processor. The account is credited as soon as that has happened.',
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
  summary: 'Returns the page on which a payment by card begins',
  description: 'For people: an amount, and a key or the id of the account. It leads to the page of the card processor.',
  auth: 'public',
  errorFormat: 'page',
  response: { 'text/html': CheckoutContent },
  errors: [404],
};

export const receivePaymentWebhook: OperationOptions = {
  id: 'receivePaymentHook',
  tag: 'Top-ups',
  summary: 'Receives a web hook of a back end that takes payments',
  description:
    'For BTCPay Server and its like, signed with the secret that both sides have. It only has an invoice looked at.',
  auth: 'public',
  raw: true,
  params: { backend: { description: 'The back end', example: 'btcpay' } },
  response: jsonContent(WebhookReceivedSchema),
  errors: [401, 404, 413, 503],
};

export const listPaymentMethods: OperationOptions = {
  id: 'listPaymentMethods',
  tag: 'Top-ups',
  summary: 'Lists the payment methods and their limits',
  auth: 'public',
  response: jsonContent(PaymentMethods),
};
