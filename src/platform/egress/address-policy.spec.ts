import { BlockList } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { AddressPolicy, addressKind, parseEgressAllow, type AddressKind } from './address-policy.js';
import { randomRuns } from '../../../test/support/random-runs.js';

const policy = (text: string): AddressPolicy => new AddressPolicy(parseEgressAllow(text));
const strict = policy('');

/** The closed IPv4 ranges by Node's own matcher: an oracle that shares no code with the policy. */
const closed = new BlockList();
const CLOSED_RANGES: [string, number][] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.31.196.0', 24],
  ['192.52.193.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['192.175.48.0', 24],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
  ['168.63.129.16', 32],
];
for (const [network, bits] of CLOSED_RANGES) closed.addSubnet(network, bits);

const dotted = (address: number): string => [24, 16, 8, 0].map((shift) => (address >>> shift) & 0xff).join('.');
const CLOSED_KINDS: [AddressKind, string[]][] = [
  ['loopback', ['127.0.0.1', '127.255.255.254', '::1', '::ffff:127.0.0.1', '::127.0.0.1', '::ffff:7f00:1']],
  ['private', ['10.0.0.0', '10.255.255.255', '172.16.0.1', '172.31.255.255', '192.168.1.1', '::FFFF:10.0.0.1']],
  ['unique local', ['fc00::1', 'fd00::2', 'fdff:ffff::1']],
  ['carrier-grade NAT', ['100.64.0.1', '100.127.255.255']],
  ['link-local', ['169.254.0.1', '169.254.169.253', 'fe80::1', 'febf::1']],
  ['multicast', ['224.0.0.1', '239.255.255.255', 'ff02::1']],
  ['broadcast', ['255.255.255.255']],
  ['unspecified', ['0.0.0.0', '0.1.2.3', '::', '::ffff:0.0.0.0', '::2']],
  ['cloud metadata', ['169.254.169.254', '::ffff:a9fe:a9fe', '100.100.100.200', '168.63.129.16', 'fd00:ec2::254']],
  ['NAT64', ['64:ff9b::8.8.8.8', '64:ff9b::a00:1', '64:ff9b:1::a00:1', '64:ff9b:1:ffff::1']],
  ['6to4', ['2002:7f00:1::', '2002:808:808::1']],
  ['Teredo', ['2001::1', '2001:0:53aa:64c:0:0:80ff:fffe']],
  ['reserved', ['240.0.0.1', '198.18.0.1', '198.19.255.255', '192.0.2.1', '198.51.100.1', '203.0.113.1', '192.0.0.8']],
  [
    'reserved',
    ['192.88.99.1', '2001:db8::1', '3fff::1', '2001:2::1', '100::1', 'fec0::1', '::ffff:0:8.8.8.8', '4000::1'],
  ],
  [
    'reserved',
    ['2001:10::1', '2001:20::1', '5f00::1', 'localhost', '', '127.1', '0177.0.0.1', '1.2.3.4%eth0', 'fe80::1%1'],
  ],
];

describe('an address', () => {
  it.each(CLOSED_KINDS.flatMap(([kind, all]) => all.map((address) => [address, kind] as const)))(
    '%p is %s, and closed unless a rule opens it',
    (address, kind) => {
      expect(addressKind(address)).toBe(kind);
      expect(strict.allows(address, 'mcp.example')).toBe(false);
    },
  );

  it.each([
    ...['8.8.8.8', '1.1.1.1', '9.255.255.255', '11.0.0.0', '100.63.255.255', '100.128.0.0', '126.255.255.255'],
    ...['128.0.0.1', '169.253.255.255', '172.15.255.255', '172.32.0.0', '192.167.255.255', '223.255.255.255'],
    ...['2606:4700::1111', '2a00:1450:4001::200e', '2001:4860:4860::8888', '::ffff:8.8.8.8', '::8.8.8.8'],
  ])('%s is public, and open', (address) => {
    expect(strict.allows(address, 'mcp.example')).toBe(true);
  });

  it('is closed as IPv4 exactly if a range of the special-purpose registries contains it, even mapped into IPv6', () => {
    const anywhere = fc.integer({ min: 0, max: 0xffff_ffff });
    const nearAnEdge = fc.tuple(fc.constantFrom(...CLOSED_RANGES), fc.integer({ min: -2, max: 2 }), fc.boolean());
    const edges = nearAnEdge.map(([[network, bits], step, atEnd]) => {
      const first = network.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0);
      return (first + (atEnd ? 2 ** (32 - bits) - 1 : 0) + step + 2 ** 32) % 2 ** 32;
    });
    const property = fc.property(fc.oneof(anywhere, edges), (number) => {
      const address = dotted(number);
      const isClosed = closed.check(address) || number === 0xa9fe_a9fe || number === 0x6464_64c8;
      expect(strict.allows(address, 'mcp.example')).toBe(!isClosed);
      expect(strict.allows(`::ffff:${address}`, 'mcp.example')).toBe(!isClosed);
    });
    fc.assert(property, { numRuns: randomRuns(5_000) });
  });
});

describe('EGRESS_ALLOW', () => {
  it.each([
    ['10.0.0.0/8', '10.200.0.1', 'x', true],
    ['10.0.0.0/8', '::ffff:10.200.0.1', 'x', true],
    ['10.0.0.0/8', '11.0.0.1', 'x', true],
    ['10.0.0.0/8', '192.168.0.1', 'x', false],
    ['10.0.0.7', '10.0.0.7', 'x', true],
    ['10.0.0.7', '10.0.0.8', 'x', false],
    ['fd00::/8', 'fd12::1', 'x', true],
    ['fd00::/8', 'fc00::1', 'x', false],
    [' 10.0.0.7 ,, fd00::2 ', 'fd00::2', 'x', true],
    ['loopback', '127.0.0.1', 'localhost', true],
    ['Loopback', '::1', 'x', true],
    ['loopback', '10.0.0.1', 'localhost', false],
    ['loopback', '0.0.0.0', 'localhost', false],
    ['0.0.0.0/0', '192.168.0.1', 'x', true],
    ['0.0.0.0/0', '::1', 'x', false],
  ])('%p: %s for %s is %p', (text, address, hostname, isAllowed) => {
    expect(policy(text).allows(address, hostname)).toBe(isAllowed);
  });

  it.each([
    ['git.corp.example', '10.0.0.1', 'git.corp.example', true],
    ['GIT.Corp.example.', 'fd00::1', 'git.corp.EXAMPLE.', true],
    ['git.corp.example', '100.64.0.1', 'git.corp.example', true],
    ['git.corp.example', '127.0.0.1', 'git.corp.example', true],
    ['git.corp.example', '10.0.0.1', 'a.git.corp.example', false],
    ['git.corp.example', '10.0.0.1', 'xgit.corp.example', false],
    ['git.corp.example', '10.0.0.1', '10.0.0.1', false],
    ['*.corp.example', '10.0.0.1', 'a.b.corp.example', true],
    ['*.corp.example', '10.0.0.1', 'corp.example', false],
    ['*.corp.example', '10.0.0.1', 'evilcorp.example', false],
    ['*.corp.example', '10.0.0.1', 'corp.example.evil.test', false],
    ['*.corp.example', '127.0.0.1', 'localhost.corp.example', false],
    ['*.bücher.example', '10.0.0.1', 'a.xn--bcher-kva.example', true],
    ['git.corp.example', '169.254.0.1', 'git.corp.example', false],
    ['git.corp.example', '0.0.0.0', 'git.corp.example', false],
    ['git.corp.example', '224.0.0.1', 'git.corp.example', false],
    ['git.corp.example', '64:ff9b::a00:1', 'git.corp.example', false],
  ])('%p: %s for %s is %p', (text, address, hostname, isAllowed) => {
    expect(policy(text).allows(address, hostname)).toBe(isAllowed);
  });

  it.each([
    ['169.254.169.254', '169.254.169.254', 'x', true],
    ['169.254.169.254/32', '::ffff:169.254.169.254', 'x', true],
    ['fd00:ec2::254', 'fd00:ec2::254', 'x', true],
    ['169.254.0.0/16', '169.254.169.254', 'x', false],
    ['0.0.0.0/0', '169.254.169.254', 'x', false],
    ['100.64.0.0/10', '100.100.100.200', 'x', false],
    ['fd00::/8', 'fd00:ec2::254', 'x', false],
    ['metadata.corp.example', '169.254.169.254', 'metadata.corp.example', false],
    ['metadata.corp.example', 'fd00:ec2::254', 'metadata.corp.example', false],
  ])('%p: cloud metadata opens only when listed as itself (%s for %s is %p)', (text, address, hostname, isAllowed) => {
    expect(policy(text).allows(address, hostname)).toBe(isAllowed);
  });

  it.each([
    ['64:ff9b::/96', '64:ff9b::8.8.8.8', true],
    ['64:ff9b::/96', '64:ff9b::10.0.0.1', false],
    ['64:ff9b::/96,10.0.0.0/8', '64:ff9b::10.0.0.1', true],
    ['64:ff9b::/96,0.0.0.0/0', '64:ff9b::169.254.169.254', false],
    ['::/0', '64:ff9b:1::10.0.0.1', false],
    ['2002::/16', '2002:808:808::1', true],
    ['2002::/16', '2002:7f00:1::1', false],
    ['2001::/32', '2001:0:1:2:3:4:f7f7:f7f7', true],
    ['2001::/32', '2001:0:1:2:3:4:80ff:fffe', false],
  ])('%p: behind a translator both addresses must be open (%s is %p)', (text, address, isAllowed) => {
    expect(policy(text).allows(address, 'x')).toBe(isAllowed);
  });

  it.each([
    ...['10.0.0.0/33', 'fd00::/129', '10.0.0.0/', '10.0.0.0/-1', '10.0.0.0/8/8', '10.0.0.0/8x', '10.0.0.0/0x8'],
    ...[
      '10.0.0.7/8',
      'fd00::1/8',
      '127.1',
      '127.1/8',
      '010.0.0.1',
      '0x7f.0.0.1',
      '2130706433',
      '0x7f000001',
      '256.1.1.1',
    ],
    ...[
      '1.2.3',
      '::ffff:10.0.0.1',
      '::ffff:10.0.0.0/104',
      '::10.0.0.1',
      'fe80::1%eth0',
      'fe80::%eth0/64',
      '[::1]',
      '::g',
    ],
    ...['*', '*.', '*.*.corp', 'a.*.corp', '*corp.example', 'http://corp.example', 'corp.example:80', 'corp.example/x'],
    ...['user@corp.example', 'corp..example', '.corp.example', '-a.example', 'a b.example', 'corp.1', '*.0.0.1', '.'],
  ])('%p is refused in a sentence that names it', (entry) => {
    const parse = (): unknown => parseEgressAllow(`10.0.0.0/8, ${entry}`);
    expect(parse).toThrow(`EGRESS_ALLOW: "${entry}" `);
    expect(parse).toThrow(/\.$/);
  });

  it('opens nothing if it lists nothing', () => {
    expect(parseEgressAllow('')).toEqual([]);
    expect(parseEgressAllow(' , ')).toEqual([]);
  });
});
