import { readFileSync } from 'node:fs';
import { BlockList, isIP } from 'node:net';
import { parseUrl } from './parse-url.js';

/** Parses the value of a setting. @throws Error whose message follows the name of the setting */
type Parse<T> = (text: string) => T;

export interface SettingDoc {
  name: string;
  fallback: string | null;
  doc: string;
  /** True for a secret, whose value can also come from the file that `NAME_FILE` names. */
  isSecret: boolean;
}

export interface Setting<T> extends SettingDoc {
  parse: Parse<T>;
}

export function setting<T>(name: string, parse: Parse<T>, fallback: string, doc: string): Setting<T> {
  return { name, parse, fallback, doc, isSecret: false };
}

/** Declares a setting whose value is null when its variable is not set. */
export function optional<T>(name: string, parse: Parse<T>, doc: string, isSecret = false): Setting<T | null> {
  return { name, parse, fallback: null, doc, isSecret };
}

export function secret<T>(name: string, parse: Parse<T>, doc: string): Setting<T | null> {
  return optional(name, parse, doc, true);
}

/**
 * Returns the value of a secret setting, from its variable or its file.
 *
 * @throws Error whose message follows the name of the setting; it does not repeat the path, which may be the secret by
 * mistake
 */
export function secretText(source: NodeJS.ProcessEnv, name: string): string | undefined {
  const [value, file] = [source[name]?.trim(), source[`${name}_FILE`]?.trim()];
  if (!file) return value;
  if (value) throw new Error(`must not be set together with ${name}_FILE: remove one of them`);
  let text: string;
  try {
    text = readFileSync(file, 'utf8').trim();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new Error(`must be in the file that ${name}_FILE names, which cannot be read (${code})`, { cause: error });
  }
  if (text === '') throw new Error(`must be in the file that ${name}_FILE names, which is empty`);
  return text;
}

export const text: Parse<string> = (value) => value;

export function integer(min: number, max: number): Parse<number> {
  return (value) => {
    const number = Number(value);
    if (!Number.isInteger(number) || number < min || number > max) {
      throw new Error(`must be a whole number from ${min} to ${max}`);
    }
    return number;
  };
}

export function oneOf<T extends string>(...allowed: T[]): Parse<T> {
  return (value) => {
    if (!allowed.includes(value as T)) throw new Error(`must be one of ${allowed.join(', ')}`);
    return value as T;
  };
}

export const flag: Parse<boolean> = (value) => oneOf('true', 'false')(value) === 'true';

export function listOf<T>(parse: Parse<T>): Parse<T[]> {
  return (value) => value.split(',').map((part) => parse(part.trim()));
}

const UNENCODED =
  'must have the reserved characters of its parts percent-encoded: `#` is `%23`, `/` is `%2F`, `?` is `%3F`, `@` is `%40`, `%` is `%25`';

export function url(...protocols: string[]): Parse<string> {
  return (value) => {
    const protocol = parseUrl(value)?.protocol ?? '';
    if (!protocol && protocols.some((each) => value.startsWith(each))) {
      throw new Error(UNENCODED);
    }
    if (!protocols.includes(protocol)) throw new Error(`must be a URL that starts with ${protocols.join(' or ')}//`);
    return value;
  };
}

/**
 * Returns a parser for the address of a store with its password: `storeUrl('redis:')`. Reserved characters of a password that are not
 * encoded are rejected: the rest of the password would appear as the host in messages.
 */
export function storeUrl(...protocols: string[]): Parse<string> {
  return (value) => {
    // Adds a host that `URL` can read; the socket in the query is used.
    const text = value.replace(/^(\w+:\/\/[^/?#]*@)(?=\/[^?]*\?(.*&)?host=)/, '$1localhost');
    const { pathname, search, hash, username, password } = new URL(url(...protocols)(text));
    if (hash || /@/.test(pathname + search)) throw new Error(UNENCODED);
    try {
      decodeURIComponent(username + password + pathname);
    } catch {
      throw new Error(UNENCODED);
    }
    return text;
  };
}

/** Parses an address to listen on; IPv6 with or without brackets. */
export const listenAddress: Parse<string> = (value) => value.replace(/^\[(.*)\]$/, '$1');

/**
 * Parses a base URL of this service, as `URL` writes it: no trailing slash, so that paths can be appended, and no empty
 * segment. An IPv6 address before a port, such as that of a pod, may lack its brackets.
 */
export const publicUrl: Parse<string> = (value) => {
  const bracketed = value.replace(/^(https?:\/\/)([\da-f]*:[\da-f:.]*:[\da-f:.]*)(?=:\d+(\/|$))/i, '$1[$2]');
  const { origin, pathname, username, password, search, hash } = new URL(url('http:', 'https:')(bracketed));
  if (username || password) throw new Error('must be a URL without user and password');
  if (search || hash) throw new Error('must be a URL without query and fragment');
  return `${origin}${pathname.replaceAll(/\/+/g, '/')}`.replace(/\/$/, '');
};

export const proxyUrl: Parse<string> = (value) => {
  try {
    const { protocol, pathname, search, hash, username, password } = new URL(value);
    decodeURIComponent(username + password);
    if (protocol === 'http:' && pathname + search + hash === '/') return value;
  } catch {
    // Rejected below, with a message that does not repeat the value.
  }
  throw new Error('must be a URL such as http://user:password@host:port');
};

/** Rejects an unreadable file: Node.js itself would ignore it. */
export const certificateFile: Parse<string> = (value) => {
  try {
    if (readFileSync(value, 'utf8').includes('-----BEGIN CERTIFICATE-----')) return value;
  } catch {
    // Rejected below.
  }
  throw new Error('must name a file of PEM certificates that the service can read');
};

export interface S3Place {
  bucket: string;
  /** Prefix of keys: empty, or with a slash at its end. */
  prefix: string;
  endpoint: string | null;
  region: string | null;
}

/** Parses `s3://bucket/prefix?endpoint=https://…&region=…`, of which only the bucket is required. */
export const s3Place: Parse<S3Place> = (value) => {
  const { hostname: bucket, pathname, searchParams, username } = new URL(url('s3:')(value));
  const unknown = [...searchParams.keys()].filter((name) => name !== 'endpoint' && name !== 'region');
  if (unknown.length > 0) throw new Error(`must not have the parameter ${unknown[0]}: it takes endpoint and region`);
  if (!bucket) throw new Error('must name a bucket: s3://bucket/prefix');
  if (username) throw new Error('must hold no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY');
  const folder = decodeURIComponent(pathname).replace(/^\/+|\/+$/g, '');
  const endpoint = searchParams.get('endpoint');
  return {
    bucket,
    prefix: folder && `${folder}/`,
    endpoint: endpoint && url('http:', 'https:')(endpoint),
    region: searchParams.get('region'),
  };
};

export interface EncryptionKey {
  id: string;
  secret: Buffer;
}

export const encryptionKey: Parse<EncryptionKey> = (value) => {
  const [, id, base64] = /^([A-Za-z0-9_-]{1,32}):([A-Za-z0-9+/=_-]+)$/.exec(value) ?? [];
  const secret = Buffer.from(base64 ?? '', 'base64');
  if (!id || secret.length !== 32) throw new Error('must be a list of id:key where key is 32 bytes in base64');
  return { id, secret };
};

export const encryptionKeys: Parse<EncryptionKey[]> = (value) => {
  const keys = listOf(encryptionKey)(value);
  if (new Set(keys.map(({ id }) => id)).size < keys.length) throw new Error('must not give two keys the same id');
  return keys;
};

export const bootstrapKey: Parse<string> = (value) => {
  if (!/^slipway_[A-Za-z0-9_-]{43}$/.test(value)) {
    throw new Error('must be "slipway_" and 32 random bytes in base64url (43 characters)');
  }
  return value;
};

export const issuerPattern: Parse<string> = (value) => {
  if (!/^https?:\/\/[A-Za-z0-9.*:[\]-]+(\/[^\s,]*)?$/.test(value)) {
    throw new Error('must be a list of issuer URLs, in which * stands for one label of the host or any path');
  }
  return value;
};

export const webOrigin: Parse<string> = (value) => {
  const { href, origin } = new URL(url('http:', 'https:')(value));
  if (href !== `${origin}/`) throw new Error('must be a list of origins such as https://app.example.com');
  return origin;
};

/** Parses hosts, in which `*.` matches one label; returns an empty list for `none`. */
export const registryHosts: Parse<string[]> = (value) => {
  const hosts = value === 'none' ? [] : listOf((host) => host.toLowerCase())(value);
  if (!hosts.every((host) => /^(\*\.)?[a-z0-9-]+(\.[a-z0-9-]+)*$/.test(host))) {
    throw new Error('must be none or a list of hosts such as mcp.example.com or *.run.example.com');
  }
  return hosts;
};

/** Parses hosts, `loopback`, and custom schemes with their colon, in lower case. */
export const redirectHosts: Parse<string[]> = (value) => {
  const entries = listOf((entry) => entry.toLowerCase())(value);
  if (!entries.every((entry) => /^([a-z0-9-]+(\.[a-z0-9-]+)*|[a-z][a-z0-9+.-]*:)$/.test(entry))) {
    throw new Error('must be a list of hosts such as claude.ai, loopback, and schemes such as cursor:');
  }
  return entries;
};

export const addressRanges: Parse<BlockList> = (value) => {
  const list = new BlockList();
  for (const part of listOf(text)(value)) {
    const [address = '', bits] = part.split('/');
    const version = isIP(address);
    const width = version === 4 ? 32 : 128;
    if (version === 0 || (bits !== undefined && (!/^\d+$/.test(bits) || Number(bits) > width))) {
      throw new Error('must be a list of addresses and CIDR ranges, such as 10.0.0.0/8');
    }
    list.addSubnet(address, Number(bits ?? width), version === 4 ? 'ipv4' : 'ipv6');
  }
  return list;
};

/** Accepts at least 16 characters, all allowed in a bearer token (RFC 6750 section 2.1). */
export const metricsToken: Parse<string> = (value) => {
  if (value !== 'open' && !/^[A-Za-z0-9._~+/-]{16,256}=*$/.test(value)) {
    throw new Error('must be 16 to 256 letters, digits or ._~+/-, or the word open');
  }
  return value;
};
