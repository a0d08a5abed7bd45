/**
 * Passwords of users, as scrypt hashes (RFC 7914) in the form `scrypt$15$8$1$salt$hash`: log2 of N, r, p, and 16 and 32 bytes in base64url.
 * A hash takes 32 MB and about 120 ms of a core, so three are computed concurrently, and others wait in a queue, of which one network gets
 * a third and one name four entries.
 *
 * An unknown account, one without a password and a wrong password take the same work and get the same response.
 */
import { randomBytes, scrypt, timingSafeEqual, type ScryptOptions } from 'node:crypto';
import { promisify } from 'node:util';
import { Injectable } from '@nestjs/common';
import type { Actor } from '../../platform/database/actor.js';
import { ForbiddenError, InvalidInputError, TooManyError } from '../../platform/errors/domain-error.js';
import type { ClientContext } from '../../platform/pages/client-context.js';
import { networkOf } from '../../platform/http/client-address.js';
import { KeyedLimiter } from '../../platform/limits/keyed-limiter.js';
import type { SessionCaller } from '../auth/access.types.js';
import { RequestLimits } from '../auth/request-limits.service.js';
import { passwordsBusy, passwordsOff } from './people.errors.js';
import { PeopleRepository } from './people.repository.js';

const LOG_N = 15;
const R = 8;
const P = 1;

const AT_ONCE = 3;
const OF_NETWORK_AT_ONCE = 2;
/** Limits of passwords that are checked or waiting: of all, of one network, and for one name. */
const ACCEPTED_MAX = 600;
const OF_NETWORK_MAX = 200;
const OF_NAME_MAX = 4;
const WAIT_MS_MAX = 60_000;

const scryptOf = promisify<string, Buffer, number, ScryptOptions, Buffer>(scrypt);

export const PASSWORD_CHARS_MIN = 12;
export const PASSWORD_CHARS_MAX = 200;

export interface RightPassword {
  accountId: string;
  passwordHash: string;
}

@Injectable()
export class PasswordsService {
  /** True if users sign in by another service only. Rejects passwords, invitations, and API keys of accounts other than operators. */
  isOff = false;
  /** Hash of a random value, checked if no password is stored. */
  private readonly dummy = format(randomBytes(16), randomBytes(32));
  private readonly accepted = new KeyedLimiter(OF_NETWORK_MAX, ACCEPTED_MAX);
  private readonly ofName = new KeyedLimiter(OF_NAME_MAX, Infinity);
  private readonly slots = new KeyedLimiter(OF_NETWORK_AT_ONCE, AT_ONCE, WAIT_MS_MAX);

  constructor(
    private readonly peopleRepository: PeopleRepository,
    private readonly requestLimits: RequestLimits,
  ) {}

  /**
   * @returns `wrong`, including for an unknown account and one without a password; `too-many` after 10 attempts for the name, or
   * `AUTH_FAILURES_MAX` of the address, within 15 minutes
   * @throws PageError while too many are checked
   */
  async check(
    { address }: Pick<ClientContext, 'address'>,
    name: string,
    password: string,
  ): Promise<RightPassword | 'wrong' | 'too-many'> {
    if (this.isOff) throw passwordsOff();
    const wasRight = await this.requestLimits.admitGuess(address, name);
    if (!wasRight) return 'too-many';
    const account = name.includes('\0') ? null : await this.peopleRepository.findByName(name);
    const [, logN, r, p, salt = '', expected = ''] = (account?.passwordHash ?? this.dummy).split('$');
    // Longer ones are never stored: this saves the work of hashing them.
    const text = password.slice(0, 2 * PASSWORD_CHARS_MAX);
    const numbers = [logN, r, p].map(Number) as [number, number, number];
    const network = networkOf(this.requestLimits.peerAt(address) ?? '');
    const leave = this.ofName.acquire(name);
    if (!leave) throw passwordsBusy();
    const derived = await this.derive(text, Buffer.from(salt, 'base64url'), numbers, network).finally(leave);
    const isRight = timingSafeEqual(derived, Buffer.from(expected, 'base64url')) && text === password;
    if (!isRight || !account?.passwordHash) return 'wrong';
    await wasRight();
    return { accountId: account.accountId, passwordHash: account.passwordHash };
  }

  /**
   * Reads the fields `old`, `password` and `repeated`. Closes all other sessions. A session that began with an API key cannot set one.
   *
   * @throws InvalidInputError, ForbiddenError, TooManyError; PageError while too many are checked
   */
  async change(
    client: ClientContext,
    { accountId, accountName, keyId: sessionId, rootKeyId }: SessionCaller,
    form: URLSearchParams,
  ): Promise<void> {
    // A password outlives the key: anybody who has a key for a moment could sign in forever.
    if (rootKeyId !== undefined)
      throw new ForbiddenError('You signed in with an API key, so you cannot set a password');
    const password = this.newPasswordIn(form);
    const checked = await this.check(client, accountName, form.get('old') ?? '');
    if (checked === 'too-many') throw new TooManyError('Too many attempts. Wait 15 minutes', 15 * 60);
    if (checked === 'wrong') throw new ForbiddenError('The present password is wrong').atField('old');
    await this.peopleRepository.setPassword(accountId, await this.hash(password), sessionId);
  }

  /**
   * Removes the password, and revokes the sessions, client authorizations and unused invitations of the account.
   *
   * @param always revokes them even if the account has no password
   * @returns false without a password
   */
  remove(actor: Actor, accountId: string, always = false): Promise<boolean> {
    return this.peopleRepository.removePassword(actor, accountId, always);
  }

  /** Reads the fields `password` and `repeated`. @throws InvalidInputError for an unusable one */
  newPasswordIn(form: URLSearchParams): string {
    const password = form.get('password') ?? '';
    const chars = [...password].length;
    const bound = chars < PASSWORD_CHARS_MIN ? `least ${PASSWORD_CHARS_MIN}` : `most ${PASSWORD_CHARS_MAX}`;
    if (chars < PASSWORD_CHARS_MIN || chars > PASSWORD_CHARS_MAX)
      throw new InvalidInputError(`Choose a password of at ${bound} characters`).atField('password');
    if (password !== form.get('repeated'))
      throw new InvalidInputError('The two passwords differ. Type the same one twice').atField('repeated');
    return password;
  }

  /** @throws PageError while too many are checked */
  async hash(password: string): Promise<string> {
    const salt = randomBytes(16);
    return format(salt, await this.derive(password, salt, [LOG_N, R, P]));
  }

  private async derive(
    password: string,
    salt: Buffer,
    [logN, r, p]: [number, number, number],
    network?: string,
  ): Promise<Buffer> {
    const keys = network === undefined ? [] : [network];
    const leave = this.accepted.acquire(keys);
    if (!leave) throw passwordsBusy();
    try {
      const options = { N: 2 ** logN, r, p, maxmem: 256 * 2 ** logN * r };
      return await this.slots.run(keys, () => scryptOf(password.normalize('NFC'), salt, 32, options));
    } finally {
      leave();
    }
  }
}

function format(salt: Buffer, hash: Buffer): string {
  return ['scrypt', LOG_N, R, P, salt.toString('base64url'), hash.toString('base64url')].join('$');
}
