import { describe, expect, it } from '@jest/globals';
import { toSkeletons } from './name-skeletons.js';

const looksAlike = (one: string, other: string) => toSkeletons(one).some((each) => toSkeletons(other).includes(each));

describe('toSkeletons', () => {
  it.each([
    ['paypal', 'раура\u04C0'],
    ['paypal', 'PAYPAI'],
    ['paypal', 'pay\u200Bpal'],
    ['admin', 'adrnin'],
    ['admin', 'ADRNIN'],
    ['anna', '\u0391\u039D\u039D\u0391'], // Greek capitals
    ['straße', 'STRASSE'],
    ['e\u0301va', '\u00E9va'],
    ['ﬁnance', 'finance'],
  ])('shares one between %j and %j', (one, other) => {
    expect(looksAlike(one, other)).toBe(true);
  });

  it.each([
    ['mail', 'mall'],
    ['ali', 'all'],
    ['\u043E\u043B\u044F', 'olya'], // Cyrillic
    ['user1', 'user2'],
  ])('shares none between %j and %j', (one, other) => {
    expect(looksAlike(one, other)).toBe(false);
  });
});
