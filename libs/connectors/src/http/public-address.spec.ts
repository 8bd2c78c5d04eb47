import { describe, expect, test } from '@jest/globals';
import { isPublicAddress, PrivateAddressError, resolvePublicAddresses } from './public-address.ts';

test.each([
  '8.8.8.8',
  '1.1.1.1',
  '172.15.255.255',
  '172.32.0.0',
  '100.63.255.255',
  '100.128.0.0',
  '223.255.255.255',
  '2606:4700::1111',
  '2a00:1450:4001::1',
  '2001:4860:4860::8888',
])('%s is public', (address) => expect(isPublicAddress(address)).toBe(true));

test.each([
  '0.0.0.0',
  '0.1.2.3',
  '10.0.0.1',
  '127.0.0.1',
  '127.255.255.254',
  '169.254.169.254',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.1.1',
  '100.64.0.1',
  '100.127.255.255',
  '192.0.0.192',
  '192.0.2.1',
  '198.18.0.1',
  '198.51.100.7',
  '203.0.113.9',
  '224.0.0.1',
  '239.255.255.255',
  '240.0.0.1',
  '255.255.255.255',
  '192.88.99.1',
  '::',
  '::1',
  '::ffff:127.0.0.1',
  '::ffff:8.8.8.8',
  '::7f00:1',
  'fe80::1',
  'fe80::1%eth0',
  'fc00::1',
  'fd12:3456::1',
  'ff02::1',
  '64:ff9b::a00:1',
  '64:ff9b:1::1',
  '100::1',
  '2001:db8::1',
  '2001::1',
  '2001:10::1',
  '2002:7f00:1::',
  '3fff::1',
  'localhost',
  '',
  '8.8.8',
  '0x7f000001',
])('%s is not public', (address) => expect(isPublicAddress(address)).toBe(false));

describe('a host', () => {
  const resolving =
    (...addresses: string[]) =>
    async () =>
      addresses;

  test('resolves to all addresses of its hostname', async () => {
    expect(await resolvePublicAddresses('relay.wallet.dev', resolving('8.8.8.8', '2606:4700::1'))).toEqual([
      '8.8.8.8',
      '2606:4700::1',
    ]);
    expect(await resolvePublicAddresses('[2606:4700::1]', resolving())).toEqual(['2606:4700::1']);
  });

  test('is rejected if its hostname or any of its addresses is not public, or if it has no address', async () => {
    await expect(resolvePublicAddresses('relay.wallet.dev', resolving('8.8.8.8', '10.0.0.1'))).rejects.toThrow(
      PrivateAddressError,
    );
    for (const name of [
      'localhost',
      'db',
      'db.',
      'api.svc.cluster.local',
      'vault.internal',
      'relay.example',
      'x.localhost.',
    ])
      await expect(resolvePublicAddresses(name, resolving('8.8.8.8'))).rejects.toThrow('not public');
    await expect(resolvePublicAddresses('[::1]', resolving('8.8.8.8'))).rejects.toThrow(PrivateAddressError);
    await expect(resolvePublicAddresses('relay.wallet.dev', resolving())).rejects.toThrow('cannot be resolved');
  });
});
