/** Finds misspelt settings, which are otherwise ignored. */
import { settingDocs, type Env } from '../../config/env.js';
import { nearestName } from '../text/nearest.js';
import { faultsOf, type Check, type Fault } from './check.js';

export const settingNameChecks: Check<{ given: string; meant: string }>[] = [
  {
    asks: 'names of settings',
    isFatal: false,
    find: (facts) => ({ ...facts }),
    fault: '{given} is not a setting and changes nothing',
    remedy: 'use {meant}, or remove it',
  },
];

/** Short names may differ in one letter, others in two. */
// eslint-disable-next-line no-restricted-properties -- Looks for names that Env does not know, and reads no value.
export function examineSettingNames(_env: Env, source = process.env): Promise<{ found: string; faults: Fault[] }> {
  const names = settingDocs().flatMap(({ name, isSecret }) => (isSecret ? [name, `${name}_FILE`] : [name]));
  const faults = Object.keys(source).flatMap((setting) => {
    if (names.includes(setting) || !source[setting]?.trim()) return [];
    // HOME and PATH, which are always set, differ from HOST and OAUTH in two letters.
    const meant = nearestName(setting, names, setting.length < 8 ? 1 : 2);
    return meant === null ? [] : faultsOf(settingNameChecks, { given: setting, meant });
  });
  return Promise.resolve({ found: 'each is one', faults });
}
