import { Controller, Get, Injectable, Module, Post } from '@nestjs/common';
import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  CurrentPage,
  DecoratedMethods,
  defineModule,
  Form,
  formOf,
  FramedPage,
  html,
  InvalidInputError,
  Page,
  type PageRequest,
  PageSlot,
  PageSlotMarker,
  Redirect,
  type RejectedForm,
  respondToForm,
  type SlotRequest,
  withReason,
} from '../../../src/extension.js';
import { testAccount, testApp } from '../../support/app.js';
import { createServer } from '../../support/factories.js';
import { signedInBrowser } from '../../support/people/browser-session.js';

const wishes: string[] = [];

@Controller('ui/m/wishes')
class WishesController {
  @Get()
  @Page('accounts:read')
  show(): FramedPage {
    return this.render();
  }

  @Post('add')
  @Form('accounts:write')
  add(@CurrentPage() { form }: PageRequest) {
    const work = () => {
      const text = form.get('text')?.trim();
      if (!text) throw new InvalidInputError('text must not be empty');
      wishes.push(text);
      return new Redirect('ui/m/wishes?done=added');
    };
    return respondToForm(
      'add',
      form,
      async () => work(),
      async (rejected) => this.render(rejected),
    );
  }

  private render(rejected?: RejectedForm): FramedPage {
    return new FramedPage((token, root) => {
      const view = { token, address: `${root}ui/m/wishes`, rejected };
      const form = formOf(view, 'add', [{ name: 'text', label: 'Wish' }], html`<button type="submit">Add</button>`);
      return {
        title: 'Wishes',
        body: withReason(view, html`<ul>${wishes.map((wish) => html`<li>${wish}</li>`)}</ul>${form}`),
      };
    });
  }
}

@Injectable()
class WishesSlots {
  @PageSlot({ place: 'server', title: 'Wishes', rule: 'servers:read' })
  forServer({ target }: SlotRequest) {
    return html`<p>Wishes for ${target?.name}</p>`;
  }
}

@Module({ controllers: [WishesController], providers: [WishesSlots] })
class WishesModule {}

const wishesModule = defineModule({ name: 'wishes', module: () => WishesModule, link: 'Wishes' });
const app = testApp({}, {}, [wishesModule]);
const owner = testAccount(app);

beforeEach(() => void (wishes.length = 0));

describe('a page of a module', () => {
  it('has a link in the head of all pages', async () => {
    const browser = await signedInBrowser(app, owner);
    expect((await browser.get('/ui/')).text).toMatch(/<a href="\.\.\/ui\/m\/wishes"><svg.+<\/svg>Wishes<\/a>/);
    expect((await browser.get('/ui/m/wishes')).text).toContain('<a href="../../ui/m/wishes" aria-current="page">');
  });

  it('has forms, which are shown again with the reason for their rejection', async () => {
    const browser = await signedInBrowser(app, owner);
    const added = await browser.submit('/ui/m/wishes/add', { text: 'Rain' }, '/ui/m/wishes');
    expect([added.status, added.headers.location]).toEqual([303, '../../../ui/m/wishes?done=added']);
    expect((await browser.get('/ui/m/wishes')).text).toContain('<li>Rain</li>');
    const rejected = await browser.submit('/ui/m/wishes/add', { text: ' ' }, '/ui/m/wishes');
    expect(rejected.status).toBe(400);
    expect(rejected.text).toContain('Wish must not be empty.');
    expect(wishes).toEqual(['Rain']);
  });

  it('rejects forms of other origins', async () => {
    const browser = await signedInBrowser(app, owner);
    await browser.get('/ui/m/wishes');
    const { status } = await browser.post('/ui/m/wishes/add', { text: 'Snow' });
    expect([status, wishes]).toEqual([403, []]);
  });
});

it('declares parts of pages as data with their content', async () => {
  const slot = app
    .get(DecoratedMethods)
    .find(PageSlotMarker)
    .find(({ options }) => options.title === 'Wishes');
  expect(slot?.options).toEqual({ place: 'server', title: 'Wishes', rule: 'servers:read' });
  const content = await slot?.call({ target: { id: '1', name: 'acme/weather' } });
  expect(String(content)).toBe('<p>Wishes for acme/weather</p>');
});

it('shows parts of the page of a server under their headings', async () => {
  const name = await createServer(app, owner, { visibility: 'public' });
  const browser = await signedInBrowser(app, await app.account());
  const { text } = await browser.get(`/ui/s/${name.replace('/', '--')}`);
  expect(text).toMatch(new RegExp(`Wishes</h2>.+<p>Wishes for ${name}</p>`, 's'));
});
