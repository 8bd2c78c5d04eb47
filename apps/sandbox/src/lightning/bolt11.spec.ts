import { createHash } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { bech32 } from '@scure/base';
import { decode } from 'light-bolt11-decoder';
import { encodeInvoice, getSignedBytes, type InvoiceTerms, MAX_DESCRIPTION_BYTES, parsePaymentHash } from './bolt11.ts';

const { secretKey, publicKey } = secp256k1.keygen();

const TERMS: InvoiceTerms = {
  msat: 2_500_000n,
  timestamp: 1_795_223_523,
  paymentHash: Buffer.alloc(32, 0xab),
  paymentSecret: Buffer.alloc(32, 0x11),
  description: 'One top-up ☕',
  expirySeconds: 900,
  minFinalCltv: 80,
};

const invoiceOf = (terms: Partial<InvoiceTerms> = {}) => encodeInvoice({ ...TERMS, ...terms }, secretKey);

function decoded(invoice: string): Record<string, unknown> {
  return Object.fromEntries(
    decode(invoice).sections.map((each) => [each.name, 'value' in each ? each.value : undefined]),
  );
}

describe('an invoice', () => {
  test('is decoded by an independent library to its terms and features', () => {
    expect(decoded(invoiceOf())).toMatchObject({
      coin_network: expect.objectContaining({ bech32: 'bcrt' }),
      amount: '2500000',
      timestamp: TERMS.timestamp,
      payment_hash: 'ab'.repeat(32),
      payment_secret: '11'.repeat(32),
      description: TERMS.description,
      expiry: 900,
      min_final_cltv_expiry: 80,
      feature_bits: expect.objectContaining({
        var_onion_optin: 'required',
        payment_secret: 'required',
        basic_mpp: 'supported',
      }),
    });
  });

  test.each([
    [100_000_000_000n, 'lnbcrt11'],
    [150_000_000n, 'lnbcrt1500u1'],
    [100_000_000n, 'lnbcrt1m1'],
    [2_500_000n, 'lnbcrt25u1'],
    [1_000n, 'lnbcrt10n1'],
    [1n, 'lnbcrt10p1'],
    [0n, 'lnbcrt1'],
  ])('of %p msat begins with %s', (msat, start) => {
    const invoice = invoiceOf({ msat });
    expect(invoice.startsWith(start)).toBe(true);
    expect(decoded(invoice).amount ?? '0').toBe(String(msat));
  });

  test('has a signature that is valid and from which the public key of its signer is recovered', () => {
    for (let description = 'a'; description.length < 12; description += 'b') {
      const { prefix, words } = bech32.decode(invoiceOf({ description }) as `${string}1${string}`, false);
      const signature = bech32.fromWords(words.slice(-104));
      const hash = createHash('sha256')
        .update(getSignedBytes(prefix, words.slice(0, -104)))
        .digest();
      const recoverable = Uint8Array.from([signature[64] as number, ...signature.slice(0, 64)]);
      const recovered = secp256k1.recoverPublicKey(recoverable, hash, { prehash: false });
      expect(Buffer.from(recovered).equals(Buffer.from(publicKey))).toBe(true);
      expect(secp256k1.verify(signature.slice(0, 64), hash, publicKey, { prehash: false })).toBe(true);
    }
  });

  test('that is an example of BOLT 11 has signed bytes with the hash that BOLT 11 states', () => {
    // The first example, "Please make a donation of any amount", states the hash of its signed bytes.
    const example =
      'lnbc1pvjluezsp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygspp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqf' +
      'qypqdpl2pkx2ctnv5sxxmmwwd5kgetjypeh2ursdae8g6twvus8g6rfwvs8qun0dfjkxaq9qrsgq357wnc5r2ueh7ck6q93dj32dlqnls087fxdwk8qakdyaf' +
      'kq3yap9us6v52vjjsrvywa6rt52cm9r9zqt8r2t7mlcwspyetp5h2tztugp9lfyql';
    const { prefix, words } = bech32.decode(example as `${string}1${string}`, false);
    const hash = createHash('sha256')
      .update(getSignedBytes(prefix, words.slice(0, -104)))
      .digest('hex');
    expect(hash).toBe('6daf4d488be41ce7cbb487cab1ef2975e5efcea879b20d421f0ef86b07cbb987');
  });

  test('can have a description of the maximum length', () => {
    const description = 'x'.repeat(MAX_DESCRIPTION_BYTES);
    expect(decoded(invoiceOf({ description })).description).toBe(description);
  });

  test('has a payment hash that can be parsed, also if the invoice is in upper case', () => {
    expect(parsePaymentHash(invoiceOf())).toBe('ab'.repeat(32));
    expect(parsePaymentHash(invoiceOf().toUpperCase())).toBe('ab'.repeat(32));
  });

  test('with an invalid checksum, network or content has no payment hash that can be parsed', () => {
    const invoice = invoiceOf();
    expect(parsePaymentHash(`${invoice.slice(0, -1)}${invoice.endsWith('q') ? 'p' : 'q'}`)).toBeUndefined();
    const { words } = bech32.decode(invoice as `${string}1${string}`, false);
    expect(parsePaymentHash(bech32.encode('lnbc25u', words, false))).toBeUndefined();
    expect(parsePaymentHash(bech32.encode('lnbcrt', [1, 2, 3], false))).toBeUndefined();
    expect(parsePaymentHash('hello')).toBeUndefined();
  });
});
