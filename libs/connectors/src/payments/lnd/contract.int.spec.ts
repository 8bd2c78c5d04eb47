import { readFileSync } from 'node:fs';
import { readPayments } from '#catalogue';
import { LndBackend } from '#connectors';
import { getCoin, type PaymentCase, paymentBackendContract, SandboxWallet, type Wallet } from '#testing';
import { startSandbox } from '../../../../../apps/sandbox/src/sandbox.ts';
import { BackendHttp } from '../backend-http.ts';

const lightning = (can: PaymentCase['capabilities']): PaymentCase => ({
  coin: getCoin(readPayments(), 'BTC'),
  kind: 'bolt11',
  units: 1_000_000n,
  capabilities: can,
});

paymentBackendContract('LND', [lightning(['overpaid', 'after_expiry', 'hinted'])], async () => {
  const sandbox = await startSandbox({ port: 0 });
  const backend = new LndBackend({ lndUrl: `${sandbox.url}/lnd`, lndMacaroon: '00', lndCertificates: undefined });
  const close = async () => {
    await backend.close();
    await sandbox.close();
  };
  return { backend, wallet: new SandboxWallet(sandbox.url), close };
});

const { LND_TEST_URL: lndUrl, LND_TEST_MACAROON: lndMacaroon = '', LND_TEST_CERT: certificateFile } = process.env;
/** The node of a payer. */
const { LND_TEST_PAYER_URL: payerUrl, LND_TEST_PAYER_MACAROON: macaroon = '' } = process.env;
const { LND_TEST_PAYER_CERT: payerCertificateFile } = process.env;
const read = (file: string | undefined) => (file ? [readFileSync(file, 'utf8')] : undefined);
if (lndUrl) {
  const open = async () => {
    const backend = new LndBackend({ lndUrl, lndMacaroon, lndCertificates: read(certificateFile) });
    if (payerUrl === undefined) return { backend, close: () => backend.close() };
    const payer = new BackendHttp('The payer', payerUrl, { getCertificates: () => read(payerCertificateFile) });
    const close = async () => {
      await payer.close();
      await backend.close();
    };
    return { backend, wallet: payingWith(payer), close };
  };
  const can: PaymentCase['capabilities'] = payerUrl === undefined ? [] : ['overpaid', 'hinted'];
  paymentBackendContract('a real LND', [lightning(can)], open, payerUrl === undefined ? 'without' : 'with a wallet');
}

/** Returns a wallet that can pay more than an invoice requests. */
function payingWith(payer: BackendHttp): Wallet {
  const headers = { 'grpc-metadata-macaroon': macaroon };
  const asked = async (method: 'GET' | 'POST', path: string, body?: object) => {
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    return JSON.parse((await payer.send({ method, path, headers, ...sent })).text) as Record<string, string>;
  };
  return {
    async pay({ value }, units) {
      const { destination, payment_hash = '', payment_addr, cltv_expiry } = await asked('GET', `/v1/payreq/${value}`);
      const to = { dest_string: destination, payment_hash_string: payment_hash, payment_addr };
      const order = { ...to, final_cltv_delta: Number(cltv_expiry), amt_msat: units.toString() };
      const { payment_error } = await asked('POST', '/v1/channels/transactions', order);
      if (payment_error !== '') throw new Error(`not paid: ${payment_error}`);
      return payment_hash;
    },
    mine: async () => {},
  };
}
