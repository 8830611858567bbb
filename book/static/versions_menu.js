// A menu of all versions that were built beside this one; ../versions.js lists them, which `make docs` writes.
document.addEventListener("DOMContentLoaded", () => {
  const versions = window.GRAPHC_VERSIONS || [];
  const place = document.querySelector(".sidebar-brand");
  if (versions.length < 2 || !place) return;
  const root = document.documentElement.dataset.content_root || "./";
  const menu = document.createElement("select");
  menu.className = "versions-menu";
  menu.setAttribute("aria-label", "Version");
  const here = new URL(root, location.href).pathname.split("/").filter(Boolean).pop();
  for (const version of versions) menu.add(new Option(version, version, false, version === here));
  menu.onchange = () => { location.href = new URL(root + "../" + menu.value + "/index.html", location.href).href; };
  place.after(menu);
});
