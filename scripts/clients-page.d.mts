import type { Client } from '../src/modules/console/clients/clients.js';

/** @see clients-page.mjs */
export function clientsPage(page: string, clients: readonly Client[]): string;
