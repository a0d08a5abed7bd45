import { type Html, tabs } from '../../extension.js';

const TABS = [
  ['', 'Overview'],
  ['/releases', 'Releases'],
  ['/logs', 'Logs'],
  ['/settings', 'Settings'],
] as const;

export type ServerTab = (typeof TABS)[number][0];

/** @param address of the page of the server @param current null on a page under a tab */
export function serverTabs(address: string, displayName: string, current: ServerTab, mayManage: boolean): Html {
  const visibleTabs = TABS.filter(([path]) => path !== '/settings' || mayManage);
  return tabs(
    displayName,
    visibleTabs.map(([path, label]) => [`${address}${path}`, label] as const),
    `${address}${current}`,
  );
}
