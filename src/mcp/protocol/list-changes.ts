import type { ListenFilter } from './channel.js';

/** The part of a filter that one list is. */
export type ListFlag = Exclude<keyof ListenFilter, 'resourceSubscriptions'>;

/** The lists whose changes are told, by the notification that tells, in the words of `subscriptions/listen`. */
export const listChanges: ReadonlyMap<string, ListFlag> = new Map([
  ['notifications/tools/list_changed', 'toolsListChanged'],
  ['notifications/prompts/list_changed', 'promptsListChanged'],
  ['notifications/resources/list_changed', 'resourcesListChanged'],
]);

/** Tells that a resource changed, to those who subscribed to it. */
export const RESOURCE_UPDATED = 'notifications/resources/updated';
