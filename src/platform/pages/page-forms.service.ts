import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Env } from '../../config/env.js';
import { BodyBudget } from '../http/body/body-budget.js';
import { readBody } from '../http/body/request-body.js';
import { requireFormToken } from './form-token.js';
import { requireOwnHost } from './own-host.js';
import { PlainPageError, requireOwnPage } from './page.js';

/** Reads the forms of pages for people. The guard does for every `@Page`; other pages call it themselves. */
@Injectable()
export class PageFormsService {
  constructor(
    private readonly env: Env,
    private readonly bodyBudget: BodyBudget,
  ) {}

  /**
   * The values of a form that a page of ours made for this browser.
   *
   * @throws PageError, and as `readBody`
   */
  async read(request: Request, response: Response): Promise<URLSearchParams> {
    const refusal = () =>
      new PlainPageError(
        'forbidden',
        'foreign_form',
        'This form is no longer valid',
        'You signed in or out since it was opened, in another tab perhaps; or it was not opened in this browser, or the browser has ' +
          'lost its cookies. Nothing was changed. Open the page again, and allow cookies for it.',
      );
    requireOwnHost(request, this.env);
    requireOwnPage(request, this.env, refusal);
    this.bodyBudget.admitStranger(request, response);
    const form = new URLSearchParams(await readBody(request, Infinity));
    requireFormToken(this.env, request, form, refusal);
    return form;
  }
}
