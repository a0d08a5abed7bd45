import type { Client } from '../src/extensions/console-pages/clients/clients.js';

/** @see clients-page.mjs */
export function clientsPage(page: string, clients: readonly Client[]): string;
