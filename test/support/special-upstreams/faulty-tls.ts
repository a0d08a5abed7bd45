import { generateKeyPairSync, sign, type KeyObject } from 'node:crypto';

/** A key and its certificate, both as PEM. */
export interface Certificate {
  key: string;
  cert: string;
}

/** Whose name and key stand in a certificate. */
interface Signer {
  name: Buffer;
  privateKey: KeyObject;
}

/** A certificate for 127.0.0.1 and `names` that its own key signed. */
export function selfSignedCertificate(...names: string[]): Certificate {
  return certified('self-signed.test', namesOf(names));
}

/** A certificate for 127.0.0.1 and `names`, and the certificate authority that issued it, `ca`. */
export function issuedCertificate(...names: string[]): Certificate & { ca: string } {
  const isAuthority = der(0x30, der(0x01, Buffer.from([255])));
  const basicConstraints = der(0x30, oid('551d13'), der(0x01, Buffer.from([255])), der(0x04, isAuthority));
  const authority = certified('authority.test', basicConstraints);
  return { ...certified('issued.test', namesOf(names), authority), ca: authority.cert };
}

/** A certificate with one extension, valid from yesterday to tomorrow. @param signer itself by default */
function certified(commonName: string, extension: Buffer, signer?: Signer): Certificate & Signer {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const ecdsaWithSha256 = der(0x30, oid('2a8648ce3d040302'));
  const name = der(0x30, der(0x31, der(0x30, oid('550403'), der(0x0c, Buffer.from(commonName)))));
  const body = der(
    0x30,
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.from([1])),
    ecdsaWithSha256,
    signer?.name ?? name,
    der(0x30, time(-1), time(1)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, der(0x30, extension)),
  );
  const signature = der(0x03, Buffer.from([0]), sign('sha256', body, signer?.privateKey ?? privateKey));
  const certificate = der(0x30, body, ecdsaWithSha256, signature).toString('base64');
  return {
    name,
    privateKey,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${certificate.replace(/.{1,64}/g, '$&\n')}-----END CERTIFICATE-----\n`,
  };
}

/** The extension of names (RFC 5280 section 4.2.1.6). */
function namesOf(names: string[]): Buffer {
  const address = der(0x87, Buffer.from([127, 0, 0, 1]));
  const altNames = der(0x30, address, ...names.map((dnsName) => der(0x82, Buffer.from(dnsName))));
  return der(0x30, oid('551d11'), der(0x04, altNames));
}

/** One DER element: tag, length, content. */
function der(tag: number, ...content: Buffer[]): Buffer {
  const body = Buffer.concat(content);
  // The shortest form of a length: browsers accept no other.
  const { length: size } = body;
  const length = size < 128 ? [size] : size < 256 ? [0x81, size] : [0x82, size >> 8, size & 0xff];
  return Buffer.concat([Buffer.from([tag, ...length]), body]);
}

function oid(hex: string): Buffer {
  return der(0x06, Buffer.from(hex, 'hex'));
}

/** A UTCTime, `days` from now. */
function time(days: number): Buffer {
  const digits = new Date(Date.now() + days * 86_400_000).toISOString().replace(/[-:T]/g, '').slice(2, 14);
  return der(0x17, Buffer.from(`${digits}Z`));
}
