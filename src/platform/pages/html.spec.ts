import { describe, expect, it } from '@jest/globals';
import { html } from './html.js';

describe('html', () => {
  it('escapes values, in text and in attributes', () => {
    const name = `"><script>alert('&')</script>`;
    const escaped = '&quot;&gt;&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;';
    expect(String(html`<a title="${name}">${name}</a>`)).toBe(`<a title="${escaped}">${escaped}</a>`);
  });

  it('takes markup of its own, and lists of it', () => {
    const items = ['a', '<b>'].map((item) => html`<li>${item}</li>`);
    expect(String(html`<ul>${items}</ul>`)).toBe('<ul><li>a</li><li>&lt;b&gt;</li></ul>');
  });

  it('leaves out null, undefined and false, and shows 0', () => {
    expect(String(html`${null}${undefined}${false}${0}`)).toBe('0');
  });

  it('replaces marks that turn the direction of text, and control characters but line ends', () => {
    expect(String(html`${'a\u202eb\u0007c\nd\re\u2066'}`)).toBe('a b c\nd e ');
  });
});
