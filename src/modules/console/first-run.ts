/**
 * The operator's remaining first steps, a part of Home. They are read from the settings, the folder of the embedded database and the lists
 * of Home, so that an item disappears as soon as it is done.
 */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { LAST_BACKUP, type Env } from '../../config/env.js';
import { buttonLink, card, list } from '../../platform/pages/components.js';
import { html, type Html } from '../../platform/pages/html.js';

/**
 * @param hasPeople true if there is a second user
 * @param hasServers true if the operator can find a server or a connection
 * @returns null when nothing is left
 */
export function firstRun(env: Env, ui: string, hasPeople: boolean, hasServers: boolean): Html | null {
  const { baseUrl, dataDir, defaultVisibility, embeddedFolder } = env;
  const items: [isOpen: boolean, text: string, page: string, title: string][] = [
    [!hasPeople, 'Invite the second person.', 'people', 'People'],
    [
      env.publicUrl === null,
      `Set PUBLIC_URL to the address by which people reach this service: links begin with ${baseUrl} now.`,
      '../docs/guides/operate.md#address-and-proxy',
      'Address and proxy',
    ],
    [
      !env.isLocalOnly && !baseUrl.startsWith('https:'),
      'Put a proxy with TLS before this service: keys and passwords travel unencrypted now.',
      '../docs/guides/operate.md#address-and-proxy',
      'Address and proxy',
    ],
    [
      env.storesKeysWithData,
      'Move the encryption keys from DATA_DIR into ENCRYPTION_KEYS: a copy of that folder opens all stored secrets now.',
      '../docs/guides/operate.md#encryption-keys',
      'Encryption keys',
    ],
    [
      env.ownDefaultVisibility === null,
      `Choose with DEFAULT_VISIBILITY who finds new servers: they are ${defaultVisibility} now.`,
      '../docs/reference/access.md#visibility',
      'Visibility',
    ],
    [
      embeddedFolder !== null && !existsSync(path.join(dataDir, LAST_BACKUP)),
      'Make a backup: none was made of this database.',
      '../docs/guides/operate.md#backup-and-restore',
      'Backup and restore',
    ],
    [!hasServers, 'Connect or publish a first server.', '../docs/guides/connect.md', 'Connect'],
  ];
  const open = items.filter(([isOpen]) => isOpen);
  if (open.length === 0) return null;
  return card(
    'run',
    'To do for the operator',
    html`<progress max="${items.length}" value="${items.length - open.length}" aria-label="${items.length - open.length} of ${items.length} done"></progress>
${list(open.map(([, text, page, title]) => [text, buttonLink(`${ui}${page}`, title, { look: 'small' })]))}`,
    { end: html`<span class="soft">${items.length - open.length} of ${items.length} done</span>` },
  );
}
